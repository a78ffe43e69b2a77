"""Texts made of what Markdown, terminals and scripts of the world have in store."""

from hypothesis import strategies as st

_MARKUP = ["```", "~~~", "- ", "1. ", "> ", "    ", "  ", "|-|-|\n", "|a|b|\n", "---", "===", "**", "[x] ", "](", "<b>"]
_LINES = ["\n", "\n", "\n\n", "\n- ", "\n  - ", "\n> ", "\n```python\n", "\n```\n", "\n| alpha | b | c |\n", "\n# "]
_CONTROLS = [
    "\x1b[31m",
    "\x1b",
    "\x9b",
    "\x07",
    "\r",
    "\x00",
    "\t",
    "\u202e",
    "\u200d",
    "\ufe0f",
    "&#27;",
    "&amp;",
    "◈",
]
_WORDS = [
    "word",
    "alpha",
    "beta gamma",
    "漢字",
    "👩‍👧",
    "👍🏽",
    "🇩🇪",
    "e\u0301",
    "\u0301",
    "x" * 30,
    "def f():",
    "http://x.y",
]

texts = st.lists(
    st.sampled_from([*"#*_`~>-+|![]()<>&;:\\= .1", *_MARKUP, *_LINES, *_CONTROLS, *_WORDS]) | st.text(max_size=5),
    max_size=60,
).map("".join)
