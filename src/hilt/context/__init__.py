"""What the user wrote for the model to know: instruction files and skills."""
