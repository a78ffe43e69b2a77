"""Bytes to and from the operating system. Knows no JSON and no events."""
