"""The `read` tool: a window of lines of a text file, or an image."""

import codecs
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from hilt.errors import ToolError
from hilt.model.content import Image
from hilt.model.contributions import Effect, Invocation, Tool, ToolOutput
from hilt.tools.arguments import parse
from hilt.tools.background import Wanted, in_thread
from hilt.tools.files import opened, read_whole
from hilt.tools.images import examine, is_image
from hilt.tools.lines import Lines, byte_order_mark, chunks
from hilt.tools.paths import absolute, explained
from hilt.tools.workspace import Workspace

MOST_LINES = 2_000
MOST_BYTES = 51_200
_MOST_IMAGE_BYTES = 5 * 1024 * 1024
_MOST_PIXELS = 8_000
_SHRINK = "make a smaller copy first, for example with ImageMagick: magick big.png -resize 2000x2000 small.png"
_SNIFFED = 8_192
_COUNTED = 64 * 1024 * 1024  # beyond this, telling how many lines there are is not worth the reading

_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File to read: absolute, relative to the working directory, or ~/…"},
        "offset": {"type": "integer", "minimum": 1, "description": "First line to show, counted from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": f"How many lines to show, at most {MOST_LINES}"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


class _ReadArgs(Struct, frozen=True):
    path: str
    offset: int = 1
    limit: int | None = None


class _Window(Struct, frozen=True):
    text: str
    notes: tuple[str, ...]
    lines_truncated: bool
    bytes_truncated: bool
    next_offset: int | None
    total_lines: int | None


def read_tool(workspace: Workspace) -> Tool:
    async def invoke(invocation: Invocation) -> ToolOutput:
        args = parse(invocation.args, _ReadArgs)
        return await in_thread(lambda wanted: _read(workspace, args, wanted))

    return Tool(
        "read",
        f"Read a text file, at most {MOST_LINES} lines or {MOST_BYTES} bytes at a time; offset and limit reach every "
        "part of it. Lines come without numbers. PNG, JPEG, GIF and WebP files are shown as images.",
        _SCHEMA,
        invoke,
        effect=Effect.READ,
        parallel=True,
    )


def _read(workspace: Workspace, args: _ReadArgs, wanted: Wanted) -> ToolOutput:
    if args.offset < 1 or (args.limit is not None and args.limit < 1):
        raise ToolError("offset and limit are counted from 1", hint="leave them out to read from the start")
    path = absolute(args.path, workspace.cwd)
    with explained(path), opened(path, workspace.permit_reading) as (fd, status):
        head = read_whole(fd, _SNIFFED - 1)
        if is_image(head):
            return _image(path, head, fd, status.st_size)
        mark, encoding = byte_order_mark(head)
        if encoding == "utf-8" and b"\0" in head:
            raise ToolError(
                f"{path} is a binary file of {status.st_size} bytes", hint="look into it with bash: file, xxd, strings"
            )
        source = chunks(fd, head[len(mark) :], encoding, wanted)
        window = _window(Lines(source), path, args)
    notes = window.notes
    if encoding != "utf-8":
        notes = (*notes, f"... [decoded from {encoding.upper()}]")
    return _output(path, args.offset, window, notes)


def _window(lines: Lines, path: Path, args: _ReadArgs) -> _Window:
    lines.skip(args.offset - 1)
    if args.offset > 1 and not lines.more():
        raise ToolError(
            f"offset {args.offset} is beyond the end: {path} has {lines.passed} line{'s' * (lines.passed != 1)}",
            hint="use a smaller offset",
        )
    most = min(args.limit or MOST_LINES, MOST_LINES)
    shown: list[str] = []
    notes: list[str] = []
    used = 0
    bytes_truncated = False
    while len(shown) < most and lines.more():
        kept, length = lines.take(MOST_BYTES)
        text = _decode(kept, cut=length > len(kept))
        size = len(text.encode())
        if bytes_truncated := used + size > MOST_BYTES or length > len(kept):
            if shown:
                break  # this line begins the next window
            text = text.encode()[:MOST_BYTES].decode(errors="ignore")
            notes.append(f"... [line {lines.passed} is {length} bytes long and was cut at {MOST_BYTES}]")
        shown.append(text)
        used += size
    last = args.offset - 1 + len(shown)
    next_offset = last + 1 if last < lines.passed or lines.more() else None
    total = lines.count_rest(_COUNTED)
    lines_truncated = next_offset is not None and len(shown) == MOST_LINES
    if next_offset is not None and (lines_truncated or bytes_truncated):
        cap = f"{MOST_LINES} lines" if lines_truncated else f"{MOST_BYTES} bytes"
        of = f" of {total}" if total is not None else ""
        notes.append(f"... [truncated at {cap}, after line {last}{of}; continue with offset={next_offset}]")
    return _Window("".join(shown), tuple(notes), lines_truncated, bytes_truncated, next_offset, total)


def _decode(line: bytes, *, cut: bool) -> str:
    """The text to show. A character that the cut went through is left out."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return codecs.getincrementaldecoder("utf-8")("replace").decode(line, final=not cut)


def _output(path: Path, start: int, window: _Window, notes: tuple[str, ...]) -> ToolOutput:
    text = window.text
    if "\ufffd" in text:
        notes = (*notes, "... [bytes that are not valid UTF-8 are shown as \ufffd]")
    if not text:
        notes = (f"[{path} is empty]", *notes)
    if notes and text and not text.endswith("\n"):
        text += "\n"
    return ToolOutput.of(
        text + "\n".join(notes),
        path=str(path),
        start_line=start,
        lines_truncated=window.lines_truncated,
        bytes_truncated=window.bytes_truncated,
        total_lines=window.total_lines,
        next_offset=window.next_offset,
    )


def _image(path: Path, head: bytes, fd: int, size: int) -> ToolOutput:
    if size <= _MOST_IMAGE_BYTES:
        data = head + read_whole(fd, _MOST_IMAGE_BYTES - len(head))
        size = max(size, len(data))
    if size > _MOST_IMAGE_BYTES:
        raise ToolError(f"{path} is an image of {size} bytes; at most {_MOST_IMAGE_BYTES} can be shown", hint=_SHRINK)
    picture = examine(data)
    if isinstance(picture, str):
        raise ToolError(
            f"{path} cannot be shown: it begins like an image, but {picture}",
            hint="make it again, or look into it with bash: file, xxd",
        )
    if max(picture.width, picture.height) > _MOST_PIXELS:
        raise ToolError(
            f"{path} is an image of {picture.width} x {picture.height} pixels; "
            f"at most {_MOST_PIXELS} in either direction can be shown",
            hint=_SHRINK,
        )
    details = {"path": str(path), "bytes": size} | asdict(picture)
    return ToolOutput((Image(picture.mime_type, data),), details=details)
