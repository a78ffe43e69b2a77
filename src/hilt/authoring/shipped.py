"""Where what comes with hilt beside its code lies: the SDKs, and the contract with its conversations.

In an installed hilt that is inside the package, in a checkout at its top.
"""

from pathlib import Path
from typing import Literal

from hilt.errors import PackageError

_PACKAGE = Path(__file__).parents[1]


def shipped(name: Literal["sdks", "spec"]) -> Path:
    """Raises `PackageError`."""
    for place in (_PACKAGE / name, _PACKAGE.parents[1] / name):
        if place.is_dir():
            return place
    raise PackageError(f"this hilt came without its {name}", hint="install hilt anew")
