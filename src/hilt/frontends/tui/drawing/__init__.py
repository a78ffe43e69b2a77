"""From text to rows of a terminal: pure functions, no widgets."""
