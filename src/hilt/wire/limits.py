"""How much of what is said goes on, whatever dialect it is said in: to the model, and to those who watch.

How long a line may be is `line`'s business.
"""

MODEL_TEXT_LIMIT = 256 * 1024
"""Bytes of text one result may put before the model."""

IMAGE_LIMIT = 5 * 1000 * 1000
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What model APIs take. A picture they refuse would spoil every later request of the session."""

BLOCK_LIMIT = 1024
"""Blocks one result may have."""

RELAY_LIMIT = 256 * 1024
RELAY_BLOCKS = 128
"""How much of a result, in bytes and in blocks, is passed on to extensions."""

TEXT_LIMIT = 512 * 1024
"""Characters of a text an event carries: few enough to fit a line even if each needs an escape."""

SYSTEM_PROMPT_LIMIT = 1024 * 1024
"""Bytes."""
