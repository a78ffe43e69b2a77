"""What extensions, and clients, can ask the host for: by method, whatever dialect they speak."""
