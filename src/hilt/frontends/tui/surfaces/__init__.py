"""What extensions show, and the lines around the input."""
