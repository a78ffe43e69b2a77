"""Characters that a person does not see, and those beside which some of them belong: as ranges of a pattern's class.

Owns the lists and nothing else. What becomes of such a character, shown by its number, taken out or told of, is decided
where text is shown, sent to a model or looked through.
"""

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""But for tabs and line feeds."""
SURROGATES = "\ud800-\udfff"
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode calls default-ignorable (direction marks and isolates, zero-width characters, joiners, fillers,
variation selectors, tags, the soft hyphen), and the separators and annotation marks that screens do not draw either."""
DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Those among them that change the order in which text is shown."""
CARRIERS = "\ufe00-\ufe0f\U000e0000-\U000e0fff"
"""Those among them that come in so many kinds that text can be written in them: selectors and tags."""

PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u25c7\u25c9-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
"""Emoji, which selectors colour and joiners put together. Without ◈, by which hilt marks what it says itself."""
MONGOLIAN = "\u1820-\u18aa"
SOUTH_EAST = "\u1000-\u109f\u1780-\u17b3\u17b6-\u17d3"
JOINING = f"\u0620-\u06ff\u0710-\u077f\u07c0-\u07ff\u0840-\u08ff\u0900-\u0dff{SOUTH_EAST}{MONGOLIAN}"
"""Letters of scripts in which a joiner changes how words are written."""
