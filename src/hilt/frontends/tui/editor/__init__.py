"""Where the user types: the editor, what it completes, what it remembers."""
