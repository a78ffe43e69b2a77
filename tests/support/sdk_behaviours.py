"""What the demo program does, in whatever SDK it is written, by the names of the table."""

from typing import Any

SDKS = ("python", "typescript", "go")
DIALECTS = ("frames", "jsonrpc on 3/4", "jsonrpc on stdio")
_BEGUN = ["user_prompt_submit:tell the events", "turn_start:1", "assistant_message:", "tool_call:echo"]
_ENDED = ["turn_start:2", "assistant_message:events told", "turn_end:end"]
_EVENTS = {
    "frames": [*_BEGUN, "turn_end:tool_use", "tool_result:echo", *_ENDED],
    "jsonrpc": [*_BEGUN, "tool_result:echo", "turn_end:tool_use", *_ENDED],
}
_ALSO = ["compactor", "events", "input transformer", "message hook", "models of echoes", "section Demo rules"]
BEHAVIOURS: dict[str, Any] = {
    "a tool answers with a text": (False, "hi hi"),
    "a default is filled in": (False, "once"),
    "progress is shown": ["1\n", "2\n"],
    "a call is cancelled": ("waiting\n", "slow was cancelled"),
    "a picture is a result": (False, "image/png"),
    "data are told as JSON": (False, '{"sum":3}'),
    "nothing is ok": (False, "ok"),
    "a ToolError is told with its code and hint": (True, "[error:NO_CITY] no such city\nhint: try Rome"),
    "an exception is an error result": (True, True),
    "what JSON cannot hold is an error": (True, "x: JSON cannot hold NaN"),
    "a tool calls another tool": (False, "read: seven"),
    "printing does no harm": (False, "quiet"),
    "print goes to the log": [True, True],
    "a command shows a text": "shown me",
    "a command does nothing": True,
    "a command inserts": "inserted words",
    "a command prompts": "end",
    "a command prompts with a tool's result": "end",
    "a command fails": (False, "extension /fail: it broke"),
    "a shortcut is pressed": "pressed",
    "a call is blocked": (True, "that is forbidden (refused by guard demo)"),
    "arguments are rewritten": (False, "changed"),
    "a guard that fails refuses": (True, "demo's guard failed: it exploded"),
    "a turn is refused": ("turn_blocked", True),
    "an answer is replaced": ("my code is ****", False),
    "an answer is kept back": (True, "nothing to say"),
    "the system prompt is replaced": [True],
    "the text of a result is replaced": (False, "LOUD"),
    "a whole result is replaced": (True, "too quiet"),
    "events are told": _EVENTS,
    "a panel is opened": ("Counter", ["count 0", "typed "], "q closes"),
    "a panel is drawn anew": (True, True, True),
    "a panel is closed by the user": "the counter was closed",
    "a panel closes itself": True,
    "a note is left": [("success", "a note")],
    "a text is shown": ["a text"],
    "the input is set": [("an input", True)],
    "a word is in the status line": ["a word"],
    "widgets and overlays come and go": True,
    "a prompt is submitted": ("demo", "end"),
    "a section is in the system prompt": True,
    "a hook adds to a message": "you said: what time is it? (at noon)",
    "input is transformed": "hi Ada",
    "input is dealt with": "noop",
    "a compactor shortens": 1,
    "a provider answers": (True, "hm", "you said: polly", 5, 2),
    "the host is asked": "A title | four | metric | hilt",
    "the user is asked": "you chose that",
    "the bus is heard": "heard a word",
    "data is kept where the host says": "demo",
    "data is kept": True,
    "all is registered": ("1.0.0", 10, 14, [*_ALSO, "shortcut ctrl+g"]),
    "nothing strange is said": (0, 0, 0),
    "it ends with the host": 0,
}
"""Each with its outcome in a session of hilt. A dict has one for each dialect."""


def outcome(name: str, dialect: str) -> Any:
    """What is right in a dialect."""
    wanted = BEHAVIOURS[name]
    return wanted[dialect.partition(" ")[0]] if isinstance(wanted, dict) else wanted


# Transcripts

REASONS = frozenset(
    (
        "no SDK would do this",
        "there is one extension",
        "it does not start",
        "only panels that are open are drawn",
        "all is said after initialize: what is registered depends on the host",
    )
)
"""Why an SDK may leave out a conversation of spec/transcripts."""
