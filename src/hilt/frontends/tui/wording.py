"""hilt's own words, as they apply in here: what they tell to do on a command line can be typed at once."""

import re

_LOGIN = re.compile(r"`hilt (login|logout)(?: ([\w-]+))?[^`]*`")


def applied(text: str) -> str:
    """With `/login` in place of `hilt login`."""
    return _LOGIN.sub(lambda found: f"`/{found[1]}{f' {found[2]}' if found[2] else ''}`", text)
