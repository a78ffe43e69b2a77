"""Extensions that are one file: what they say of themselves, what runs them, and what they need of Python."""
