"""Drawn rows as text again, for copying."""

from collections.abc import Iterable

from textual.strip import Strip


def text_of(strips: Iterable[Strip]) -> str:
    """The rows as lines, without what only fills them up."""
    return "\n".join([strip.text.rstrip(" ") for strip in strips])
