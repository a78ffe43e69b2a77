"""`python -m hilt` is the same program as `hilt`."""

import os  # as is sys, it is there already, whatever lies about
import sys

# Python looks for modules in the working directory first when it is started like this, and a project may hold anything.
try:
    here = os.getcwd()  # noqa: PTH109 - pathlib would be looked for there
except OSError:
    here = ""  # it is gone, which is told later on
if sys.path and sys.path[0] in ("", here):
    del sys.path[0]

from hilt.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
