"""`python -m hilt` is the same program as `hilt`."""

import sys

from hilt.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
