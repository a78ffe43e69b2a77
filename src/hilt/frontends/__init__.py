"""The faces: each shows the agent's events in its own way and passes on what the user wants."""
