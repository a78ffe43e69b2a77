"""The session log on disk: append, recover, list, branch, export, undo."""
