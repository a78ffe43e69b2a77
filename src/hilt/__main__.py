"""`python -m hilt` is the same program as `hilt`."""

from hilt.cli.main import main

if __name__ == "__main__":
    main()
