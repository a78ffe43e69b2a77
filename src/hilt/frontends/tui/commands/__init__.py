"""What slash commands open in the terminal: lists to pick from, things to read, things to fill in."""
