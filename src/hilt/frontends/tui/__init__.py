"""The terminal interface: one client of a session, drawn with Textual."""
