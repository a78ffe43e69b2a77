"""What all tests have in common."""

import os


def pytest_xdist_auto_num_workers() -> int:
    """More than there are processors: most of the time a test waits for another program."""
    return (os.cpu_count() or 1) * 3 // 2
