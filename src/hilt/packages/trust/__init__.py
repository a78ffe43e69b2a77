"""Extensions that came with a folder: which of them may run, as they were when the user said so."""
