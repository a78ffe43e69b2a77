"""What extensions say and hear, as bytes and as values. Pure: no I/O, no waiting."""
