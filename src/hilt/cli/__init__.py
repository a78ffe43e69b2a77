"""The command line, and the composition root that puts everything together."""
