"""hilt: a terminal coding agent whose extensions are separate programs.

Importing this package does nothing and costs nothing: `hilt --version` is timed.
"""

__version__ = "0.1.0"
