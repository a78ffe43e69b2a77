"""Extensions for hilt, zot and piglet, the whole SDK in one file: put it beside your extension.

Made by bundle.py from the package hilt_sdk; change that instead. MIT licence.
"""

from __future__ import annotations

from _thread import allocate_lock
from _thread import allocate_lock, get_ident, start_new_thread
from _thread import allocate_lock, start_new_thread
from _thread import start_new_thread
from time import perf_counter
from time import perf_counter, sleep
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any
    Block_ = dict[str, Any]
    """`{"type": "text", "text": …}` or `{"type": "image", "mime_type": …, "data": …}`."""
    from collections.abc import Callable, Mapping
    from collections.abc import Callable, Iterable
    Convert = Callable[[Any, str], Any]
    """From a JSON value and its place to a value of the type. Raises `BadArgument`."""
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Callable, Coroutine
    import asyncio
    from collections.abc import Coroutine
    from collections.abc import Callable, Iterator
    Answer = Callable[[Any], None]
    Failed = Callable[[BaseException], None]
    from collections.abc import Sequence
    from collections.abc import Mapping
    Params = dict[str, Any]
    Frame = dict[str, Any]
    Message = dict[str, Any]
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    Object = dict[str, Any]
    from typing import Any, Literal
    Level = Literal["info", "success", "warn", "error"]
    from _thread import LockType
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar, overload
    F = TypeVar("F", bound=Callable[..., Any])
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar
    Self = TypeVar("Self", bound="Stage")

# values


# What goes wrong


class SdkError(Exception):
    """All errors that the SDK raises itself."""
class RegistrationError(SdkError, ValueError):
    """Something that cannot be registered; the message says what and how to put it right."""
class NotOffered(SdkError):
    """The present host does not offer what was asked for."""
class NotConnected(SdkError):
    """There is no host: the extension does not run, or the host has gone."""
class HostError(SdkError):
    """The host answered with an error."""
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ToolError(Exception):
    """A tool failed, and the model shall read exactly this; the code and the hint are for it too."""
    def __init__(self, message: str, code: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint


def explained(error: BaseException) -> str:
    """One line for whoever asked: the message of a `ToolError` or of the SDK's own, of others their kind too."""
    if isinstance(error, (ToolError, SdkError)):
        return readable(str(error))
    text = " ".join(readable(str(error)).split())
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def readable(text: str) -> str:
    """The text without what no line could carry."""
    return text.encode(errors="replace").decode()


# What tools give back


class Image:
    """A picture: its bytes, or the path of its file. The type is found out when it is not given."""
    __slots__ = ("data", "mime")

    def __init__(self, data: bytes | str | os.PathLike[str], mime: str = "") -> None:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            with open(data, "rb") as file:
                data = file.read()
        self.data = bytes(data)
        self.mime = mime or _mime(self.data)

    def block(self) -> Block_:
        from binascii import b2a_base64

        return {"type": "image", "mime_type": self.mime, "data": b2a_base64(self.data, newline=False).decode()}


class Result:
    """What a tool returns when a text alone does not say it all."""
    __slots__ = ("activate", "code", "content", "hint", "is_error", "structured", "truncated")

    def __init__(
        self,
        text: str | None = None,
        *,
        content: Sequence[str | Image | Block_] | None = None,
        is_error: bool = False,
        structured: Any = None,
        activate: Sequence[str] = (),
        code: str = "",
        hint: str = "",
    ) -> None:
        blocks = [] if text is None else [_block(text)]
        blocks.extend(_block(one) for one in content or ())
        self.content: list[Block_] = blocks
        self.is_error = is_error
        self.structured = structured
        """For programs: kept beside the text, where the host can."""
        self.activate = list(activate)
        """Deferred tools that the model may call from now on."""
        self.code = code
        self.hint = hint
        self.truncated = False
        """Of another tool's result: there was more."""
    @property
    def failed(self) -> bool:
        return self.is_error or bool(self.code)

    @property
    def text(self) -> str:
        """All its texts, joined by line breaks."""
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    def __repr__(self) -> str:
        return f"Result({self.text!r}{', is_error=True' if self.is_error else ''})"


def result_of(value: Any) -> Result:
    """What a handler returned, as a result. Raises `TypeError` for what has no form."""
    if isinstance(value, str):
        return Result(value)
    if isinstance(value, Result):
        return value
    if value is None:
        return Result("ok")
    if isinstance(value, Image):
        return Result(content=[value])
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, (str, Image, Result)) for one in value):
        return _joined(value)

    text = encoded_text(value)
    return Result(text) if isinstance(value, (bool, int, float)) else Result(text, structured=value)


def failure(error: BaseException) -> Result:
    """An exception, as the model shall read it."""
    if isinstance(error, ToolError):
        return Result(readable(error.message), is_error=True, code=error.code, hint=error.hint)
    return Result(explained(error), is_error=True)


def _joined(parts: Sequence[Any]) -> Result:
    whole = Result()
    for part in parts:
        one = result_of(part)
        whole.content.extend(one.content)
        whole.is_error = whole.is_error or one.is_error
        whole.activate.extend(one.activate)
        whole.structured = one.structured if whole.structured is None else whole.structured
    return whole


def _block(one: Any) -> Block_:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    if isinstance(one, Image):
        return one.block()
    if isinstance(one, dict):
        return one
    raise TypeError(f"content is made of str, Image and blocks, not of {type(one).__name__}")


_MAGIC = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def _mime(data: bytes) -> str:
    for begins, mime in _MAGIC:
        if data.startswith(begins):
            return mime
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    raise ValueError("neither PNG, JPEG, GIF nor WebP: give mime=")


# What commands and shortcuts give back, besides a text to show and a panel to open


class Insert:
    """Put the text into the user's input."""
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Prompt:
    """Send the text to the model."""
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class ToolPrompt:
    """Run the tool, and send the prompt to the model with what it returned."""
    __slots__ = ("args", "prompt", "tool")

    def __init__(self, tool: str, args: Mapping[str, Any] | None = None, prompt: str = "") -> None:
        self.tool = tool
        self.args = dict(args or {})
        self.prompt = prompt


# What interceptors and transformers give back


class Block:
    """No: the tool is not run, the turn ends, the answer is not shown."""
    __slots__ = ("reason",)

    def __init__(self, reason: str = "") -> None:
        self.reason = reason


class Rewrite:
    """Run the tool with these arguments instead."""
    __slots__ = ("args",)

    def __init__(self, args: Mapping[str, Any]) -> None:
        self.args = dict(args)


class Replace:
    """Show this text instead of the answer."""
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Handled:
    """The input was dealt with: nothing is sent to the model."""
    __slots__ = ()


# What handlers are told and asked

_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("text", "tool_id", "tool_name", "stop", "error", "reason", "status", "session_id", "cwd"), ""),
    **dict.fromkeys(("tool_preview", "decision", "source", "stage", "tool_args_raw", "compaction_id"), ""),
    **dict.fromkeys(("agent_id", "agent_run_id"), ""),
    **dict.fromkeys(("step", "sequence", "image_count", "message_count", "token_estimate"), 0),
    **dict.fromkeys(("queued", "executed"), False),
    "tool_args": None,
    "result": None,
}


class Event:
    """Something that happened. Its members are those of the frames dialect; one that was not told has its default."""
    __slots__ = ("data", "name")

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name = name
        """Which event it is."""
        self.data = data
        """As it came."""
    def __getattr__(self, member: str) -> Any:
        try:
            value = self.data.get(member)
            return _DEFAULTS[member] if value is None else value
        except KeyError:
            raise AttributeError(f"{self.name} has no {member}; it has: {', '.join(sorted(self.data))}") from None


class Intercepted:
    """What an interceptor is asked about. Which members have a meaning depends on the event."""
    __slots__ = (
        "args",
        "content",
        "data",
        "event",
        "id",
        "is_error",
        "origin",
        "step",
        "system_prompt",
        "text",
        "tool",
    )

    def __init__(self, event: str, data: dict[str, Any] | None = None) -> None:
        self.event = event
        self.data = data or {}
        """As it came."""
        self.tool = ""
        self.id = ""
        """That of the tool call."""
        self.args: dict[str, Any] = {}
        self.origin = ""
        """The extension that makes the call, when it is not the model."""
        self.step = 0
        self.text = ""
        """Of the answer, or of the result."""
        self.system_prompt = ""
        self.content: list[Block_] = []
        self.is_error = False


# transport


LINE_LIMIT = 4 * 1024 * 1024
"""A line is shorter than this, its end included."""
_CHUNK = 65536
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class LineTooLong(SdkError, ValueError):
    """A line that no host would take."""
    def __init__(self, size: int) -> None:
        super().__init__(
            f"{size} bytes are too many for one line, which is shorter than {LINE_LIMIT}; "
            "write a file and name it instead"
        )
        self.size = size


class Unwritable(SdkError, ValueError):
    """A value that JSON has no form for."""
# JSON


def _plain(value: Any) -> Any:
    """What JSON does not know by itself: dataclasses, enums, paths, sets."""
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__}
    if hasattr(kind, "__members__"):  # an enum
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"JSON cannot hold a {kind.__name__}")


class _Reading:
    """What the C scanner asks of a decoder."""
    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")


def _codec() -> tuple[Callable[[str, int], tuple[Any, int]], Callable[[Any, int], Any]]:
    try:
        from _json import encode_basestring, make_encoder, make_scanner

        return make_scanner(_Reading()), make_encoder(  # type: ignore[arg-type]  # it asks for members, not for a class
            None, _plain, encode_basestring, None, ":", ",", False, False, False
        )
    except (ImportError, TypeError):  # another Python, or another version of its C part
        import json

        encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        decoder = json.JSONDecoder(strict=False, parse_constant=_Reading.parse_constant)
        scan = decoder.scan_once  # type: ignore[attr-defined]  # documented in its source only
        return scan, lambda value, _: (encoder.encode(value),)


_scan, _encode = _codec()


def decoded(line: bytes) -> Any:
    """The value on a line. Raises `ValueError`."""
    text = line.decode().strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration as stop:
        raise ValueError(f"no JSON at character {stop.value}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError(f"more after the JSON, at character {end}")
    return value


def encoded(value: Any) -> bytes:
    """A line, with its end. Raises `Unwritable` that names the member, or `LineTooLong`."""
    try:
        line = ("".join(_encode(value, 0)) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _named(value, error) from None
    if len(line) >= LINE_LIMIT:
        raise LineTooLong(len(line))
    return line


def encoded_text(value: Any) -> str:
    """A value as text for people and models. Raises `Unwritable`."""
    return encoded(value)[:-1].decode()


def _named(value: Any, error: Exception) -> Unwritable:
    if isinstance(error, RecursionError):
        return Unwritable("the value: JSON cannot hold what contains itself, or is nested too deeply")
    place = _unwritable(value, "")
    return Unwritable(f"{place[0].lstrip('.')}: {place[1]}" if place else f"the value: JSON cannot hold it: {error}")


def _unwritable(value: Any, path: str) -> tuple[str, str] | None:
    """Where in the value is what JSON has no form for, and why."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return path or "the value", "JSON cannot hold half a character (a lone surrogate)"
        return None
    if isinstance(value, float):
        return None if value - value == 0 else (path or "the value", f"JSON cannot hold {_NOT_FINITE[str(value)]}")
    if value is None or isinstance(value, int):
        return None
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, (str, int, float)) and key is not None:
                return path or "the value", f"JSON cannot hold a {type(key).__name__} as a key"
            found = _unwritable(str(key), f"{path}.{key!a}") or _unwritable(member, f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(value, (list, tuple)):
        for number, member in enumerate(value):
            found = _unwritable(member, f"{path}[{number}]")
            if found:
                return found
        return None
    try:
        return _unwritable(_plain(value), path)
    except TypeError as error:
        return path or "the value", str(error)


# Lines


class Pipes:
    """One end of a wire. Only one thread reads at a time; any may write."""
    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._writing = allocate_lock()
        self._lines: list[bytes] = []
        self._tail = b""
        self._skipping = False
        self.closed = False
        """The other end does not listen any more."""
    def read(self) -> bytes | None:
        """The next line without its end; None at the end of the input."""
        while not self._lines:
            data = self._more()
            if not data:
                return None
            parts = (self._tail + data if self._tail else data).split(b"\n")
            self._tail = parts.pop()
            if self._skipping and parts:  # the end of one that was too long
                self._skipping = False
                del parts[0]
            if len(self._tail) >= LINE_LIMIT:
                if not self._skipping:
                    log("a line of the host is too long, and was left out")
                self._tail, self._skipping = b"", True
            elif self._skipping:
                self._tail = b""
            parts.reverse()
            self._lines = parts
        return self._lines.pop()

    def write(self, line: bytes) -> None:
        """Write a line, whole. When nobody listens it is dropped."""
        with self._writing:
            rest: bytes | memoryview = line
            while not self.closed:
                try:
                    written = os.write(self._sink, rest)
                except BlockingIOError:
                    _wait(self._sink, writing=True)
                except OSError:
                    self.closed = True
                else:
                    if written == len(rest):
                        return
                    rest = memoryview(rest)[written:]

    def close(self) -> None:
        """Close both ends; what is written from here on is dropped."""
        with self._writing:
            self.closed = True
            os.close(self._sink)
        os.close(self._source)

    def _more(self) -> bytes:
        while True:
            try:
                return os.read(self._source, _CHUNK)
            except BlockingIOError:
                _wait(self._source, writing=False)
            except OSError:
                return b""


def _wait(descriptor: int, *, writing: bool) -> None:
    from select import select

    select([] if writing else [descriptor], [descriptor] if writing else [], [])


# Standard input and output


def chosen_dialect(environment: Mapping[str, str], asked: str = "") -> tuple[str, bool]:
    """The dialect, and whether it is spoken on descriptors 3 and 4."""
    wanted = asked or environment.get("HILT_SDK_DIALECT", "")
    if wanted not in ("", "frames", "jsonrpc"):
        raise ValueError(f"there is no dialect {wanted!r}: it is frames or jsonrpc")
    if wanted != "frames" and environment.get("PIGLET_FD") == "1" and _is_open(3) and _is_open(4):
        return "jsonrpc", True
    return wanted or "frames", False


def take_descriptors() -> Pipes:
    """Descriptors 3 and 4 as the wire; programs that the extension starts do not get them."""
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    _flush_by_line()
    return Pipes(3, 4)


def take_stdio() -> Pipes:
    """Standard input and output as the wire. From here on whatever is printed goes to stderr, and stdin is empty."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    _flush_by_line()
    return Pipes(source, sink)


log_listeners: list[Callable[[str], object]] = []
"""Who else is told what is written to the log: hosts in tests."""


def log(text: str) -> None:
    """Write to the extension's log, which is stderr."""
    for listener in log_listeners:
        listener(text)
    if sys.stderr is not None:
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody keeps it


def _flush_by_line() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


# docstring


_ARGS = frozenset(("args:", "arguments:", "parameters:", "params:"))
_OTHERS = frozenset(("returns:", "return:", "raises:", "yields:"))


def described(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The description for the model, and those of the parameters by name."""
    if not docstring:
        return "", {}
    if "\n" not in docstring and not docstring.startswith(":"):
        return docstring.strip(), {}
    whole: list[str] = []
    found: dict[str, str] = {}
    section = margin = -1  # how far the section's heading and its entries are indented; -1 is none
    wanted = False
    name = ""
    for line in _dedented(docstring):
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        if text.lower() in _ARGS or text.lower() in _OTHERS:
            section, margin, wanted, name = depth, -1, text.lower() in _ARGS, ""
        elif text.startswith(":") and text.count(":") > 1:
            section, margin, wanted, name = depth, -1, False, _field(text, found)
        elif not text:
            if section < 0:
                whole.append(line)
        elif section >= 0 and depth > section:
            margin = depth if margin < 0 else margin
            name = _entry(text, found, name, begins=wanted and depth == margin)
        else:
            section, name = -1, ""
            whole.append(line)
    return "\n".join(whole).strip(), {key: said.strip() for key, said in found.items() if said.strip()}


def _dedented(docstring: str) -> list[str]:
    first, *others = docstring.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in others if line.strip()), default=0)
    return [first.strip(), *(line[margin:].rstrip() for line in others)]


def _field(text: str, found: dict[str, str]) -> str:
    """`:param int days: how many`: the name, which later lines belong to; empty for other fields."""
    field, _, said = text[1:].partition(":")
    if not field.startswith("param "):
        return ""
    name = field.split()[-1]
    found[name] = said
    return name


def _entry(text: str, found: dict[str, str], name: str, *, begins: bool) -> str:
    """`days (int): how many`, or more about the one before."""
    head, colon, said = text.partition(":")
    word = head.split("(")[0].strip().lstrip("*")
    if begins and colon and word.isidentifier():
        found[word] = said
        return word
    if name:
        found[name] += " " + text
    return name


# forms


_SHOWN = 80
"""Characters of a value that does not fit."""


class BadArgument(ToolError):
    """An argument that does not fit; the message names it."""
class Form:
    """A type: its schema, and how values of it come about. Without `convert` they are what JSON has."""
    __slots__ = ("convert", "schema")

    def __init__(self, schema: dict[str, Any], convert: Convert | None) -> None:
        self.schema = schema
        self.convert = convert


def form_of(annotation: Any) -> Form:
    """Raises `RegistrationError` for a type that has no form in JSON."""
    scalar = _SCALARS.get(annotation) if isinstance(annotation, type) and _plain_type(annotation) else None
    if scalar is not None:
        return scalar
    typing = sys.modules.get("typing")
    if annotation is object or (typing is not None and annotation is typing.Any):
        return Form({}, None)
    if annotation is None or annotation is type(None):
        return Form({"type": "null"}, _exactly(type(None), "null"))
    if type(annotation).__name__ == "UnionType":
        return _union(annotation.__args__)
    if hasattr(annotation, "__metadata__"):  # Annotated[T, "description"]
        return _described(annotation)
    origin = getattr(annotation, "__origin__", None)
    if origin is not None:
        return _generic(annotation, origin, annotation.__args__)
    if isinstance(annotation, type):
        return _class(annotation)
    if getattr(annotation, "__supertype__", None) is not None:  # NewType
        return form_of(annotation.__supertype__)
    raise RegistrationError(f"{annotation!r} has no form in JSON Schema; give schema=")


def _plain_type(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def unfit(place: str, expected: str, value: Any) -> BadArgument:
    """What was expected there, in the words of JSON Schema, and what came."""
    got = encoded_text(value)
    return BadArgument(f"{place} must be {expected}, not {got if len(got) <= _SHOWN else got[:_SHOWN] + '…'}")


def no_such(place: str, known: Iterable[str]) -> BadArgument:
    return BadArgument(f"there is no argument {place}; there are {', '.join(sorted(known)) or 'none'}")


def left_out(convert: Convert | None, place: str) -> bool:
    """Whether a null where one may be left out means just that, as models have it, and is no value."""
    if convert is None:
        return False
    try:
        convert(None, place)
    except BadArgument:
        return True
    return False


def _exactly(kind: type, words: str) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if type(value) is kind:
            return value
        raise unfit(place, words, value)

    return convert


def _integer(value: Any, place: str) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise unfit(place, "an integer", value)


def _number(value: Any, place: str) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise unfit(place, "a number", value)


_SCALARS: dict[Any, Form] = {
    str: Form({"type": "string"}, _exactly(str, "a string")),
    int: Form({"type": "integer"}, _integer),
    float: Form({"type": "number"}, _number),
    bool: Form({"type": "boolean"}, _exactly(bool, "a boolean")),
    dict: Form({"type": "object"}, _exactly(dict, "an object")),
    list: Form({"type": "array"}, _exactly(list, "an array")),
}


def _described(annotation: Any) -> Form:
    form = form_of(annotation.__origin__)
    texts = [one for one in annotation.__metadata__ if isinstance(one, str)]
    return Form({**form.schema, "description": texts[0]}, form.convert) if texts else form


def _generic(annotation: Any, origin: Any, args: tuple[Any, ...]) -> Form:
    named = getattr(origin, "__name__", "") or getattr(origin, "_name", "") or ""
    if named == "Union" or named == "Optional":
        return _union(args)
    if named == "Literal":
        return _choice(list(args), {value: value for value in args})
    if named in ("Required", "NotRequired", "Final", "ReadOnly"):
        return form_of(args[0])
    if origin in (list, set, frozenset) or named in ("Sequence", "Iterable", "Collection"):
        return _list(args[0], origin if origin in (set, frozenset) else None)
    if origin is tuple:
        return _tuple(args)
    if origin is dict or named in ("Mapping", "MutableMapping"):
        return _mapping(args)
    raise RegistrationError(f"{annotation!r} has no form in JSON Schema; give schema=")


def _list(member: Any, made: Any) -> Form:
    form = form_of(member)

    def convert(value: Any, place: str) -> Any:
        if type(value) is not list:
            raise unfit(place, "an array", value)
        if form.convert is not None:
            value = [form.convert(one, f"{place}[{number}]") for number, one in enumerate(value)]
        return value if made is None else made(value)

    schema: dict[str, Any] = {"type": "array", "items": form.schema}
    if made is not None:
        schema["uniqueItems"] = True
    return Form(schema, convert)


def _tuple(args: tuple[Any, ...]) -> Form:
    if len(args) == 2 and args[1] is ...:
        return _tuple_of_any_length(args[0])
    forms = [form_of(one) for one in args]

    def convert(value: Any, place: str) -> Any:
        if type(value) is not list or len(value) != len(forms):
            raise unfit(place, f"an array of {len(forms)}", value)
        return tuple(
            one if form.convert is None else form.convert(one, f"{place}[{number}]")
            for number, (one, form) in enumerate(zip(value, forms))
        )

    count = len(forms)
    schema = {"type": "array", "prefixItems": [form.schema for form in forms], "minItems": count, "maxItems": count}
    return Form(schema, convert)


def _tuple_of_any_length(member: Any) -> Form:
    form = _list(member, None)
    to_list = form.convert
    assert to_list is not None
    return Form(form.schema, lambda value, place: tuple(to_list(value, place)))


def _mapping(args: tuple[Any, ...]) -> Form:
    if args[0] is not str:
        raise RegistrationError(f"the keys of JSON objects are texts, not {args[0]!r}")
    form = form_of(args[1])

    def convert(value: Any, place: str) -> Any:
        if type(value) is not dict:
            raise unfit(place, "an object", value)
        if form.convert is None:
            return value
        return {key: form.convert(one, f"{place}.{key}") for key, one in value.items()}

    return Form({"type": "object", "additionalProperties": form.schema or True}, convert)


def _union(args: tuple[Any, ...]) -> Form:
    forms = [form_of(one) for one in args]
    if any(not form.schema for form in forms):
        return Form({}, None)

    def convert(value: Any, place: str) -> Any:
        first: BadArgument | None = None
        for form in forms:
            try:
                return value if form.convert is None else form.convert(value, place)
            except BadArgument as error:
                first = first or error
        assert first is not None
        raise first

    return Form(_union_schema([form.schema for form in forms]), convert)


def _union_schema(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """`T | None` reads as one type where it can."""
    if len(schemas) == 2 and {"type": "null"} in schemas:
        other = schemas[0] if schemas[1] == {"type": "null"} else schemas[1]
        if isinstance(other.get("type"), str):
            nullable = {**other, "type": [other["type"], "null"]}
            if "enum" in other:
                nullable["enum"] = [*other["enum"], None]
            return nullable
    return {"anyOf": schemas}


def _choice(choices: list[Any], values: dict[Any, Any]) -> Form:
    def convert(value: Any, place: str) -> Any:
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return values[choice]

        raise unfit(place, f"one of {', '.join(map(encoded_text, choices))}", value)

    schema: dict[str, Any] = {"enum": choices}
    names = {type(choice): _JSON_TYPES.get(type(choice)) for choice in choices}
    if len(names) == 1 and (only := next(iter(names.values()))):
        schema = {"type": only, "enum": choices}
    return Form(schema, convert)


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


# Classes


def _class(annotation: Any) -> Form:
    if hasattr(annotation, "__members__"):  # an enum
        members = list(annotation.__members__.values())
        return _choice([one.value for one in members], {one.value: one for one in members})
    if hasattr(annotation, "__dataclass_fields__"):
        return _dataclass(annotation)
    if hasattr(annotation, "__total__") and issubclass(annotation, dict):
        return _typed_dict(annotation)
    if annotation is tuple:
        return _tuple_of_any_length(object)
    if annotation in (set, frozenset):
        return _list(object, annotation)
    raise RegistrationError(
        f"{annotation.__name__} has no form in JSON Schema: use str, int, float, bool, list, dict, Literal, an Enum, "
        "a dataclass or a TypedDict, or give schema="
    )


def _dataclass(annotation: Any) -> Form:
    hints = _class_annotations(annotation)
    forms: dict[str, Form] = {}
    properties: dict[str, Any] = {}
    required = []
    for name, field in annotation.__dataclass_fields__.items():
        if not field.init:
            continue
        form = _member(annotation, name, hints[name])
        forms[name] = form
        properties[name] = dict(form.schema)
        missing = sys.modules["dataclasses"].MISSING
        if field.default is not missing:
            add_default(properties[name], field.default)
        elif field.default_factory is missing:
            required.append(name)
    build = _object(forms, required)
    return Form(_object_schema(properties, required), lambda value, place: annotation(**build(value, place)))


def _typed_dict(annotation: Any) -> Form:
    hints = _class_annotations(annotation)
    forms = {name: _member(annotation, name, hint) for name, hint in hints.items()}
    needed = getattr(annotation, "__required_keys__", frozenset(hints))
    required = [name for name in hints if name in needed]
    return Form(_object_schema({name: form.schema for name, form in forms.items()}, required), _object(forms, required))


def _member(owner: Any, name: str, hint: Any) -> Form:
    try:
        return form_of(hint)
    except RegistrationError as error:
        raise RegistrationError(f"{owner.__name__}.{name}: {error}") from None


def _object(forms: dict[str, Form], required: list[str]) -> Convert:
    def convert(value: Any, place: str) -> Any:
        if type(value) is not dict:
            raise unfit(place, "an object", value)
        made = {}
        for name, form in forms.items():
            if name in value:
                one, where = value[name], f"{place}.{name}"
                if one is None and name not in required and left_out(form.convert, where):
                    continue
                made[name] = one if form.convert is None else form.convert(one, where)
            elif name in required:
                raise BadArgument(f"{place}.{name} is missing")
        for name in value:
            if name not in forms:
                raise no_such(f"{place}.{name}", forms)
        return made

    return convert


def _object_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def _class_annotations(annotation: Any) -> dict[str, Any]:
    """Of the class and those it is made from."""
    found: dict[str, Any] = {}
    for base in reversed(getattr(annotation, "__mro__", (annotation,))):
        space = vars(sys.modules.get(base.__module__)) if base.__module__ in sys.modules else {}
        for name, hint in (getattr(base, "__annotations__", None) or {}).items():
            if type(hint).__name__ == "ForwardRef":
                hint = hint.__forward_arg__
            found[name] = resolved(hint, space, f"{base.__name__}.{name}", {}) if isinstance(hint, str) else hint
    return found


def add_default(schema: dict[str, Any], default: Any) -> None:
    """Told to the model where JSON has a form for it."""
    if hasattr(type(default), "__members__"):
        default = default.value
    if default is None or type(default) in _JSON_TYPES or type(default) in (list, dict):
        schema["default"] = default


def resolved(annotation: str, space: dict[str, Any], place: str, enclosed: dict[str, Any]) -> Any:
    try:
        return eval(annotation, space, enclosed)  # noqa: S307  # the author's own words, which Python would run as well
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise RegistrationError(
            f"{place}: the type {annotation!r} cannot be found ({error}); write it where the function can see it, "
            "or give schema="
        ) from None


# schema


_MISSING: Any = object()


class Signature:
    """What a tool takes."""
    __slots__ = ("call_parameter", "members", "open", "schema")

    def __init__(self) -> None:
        self.schema: dict[str, Any] = {"type": "object"}
        self.members: list[tuple[str, Convert | None, bool]] = []
        """Each with how it is converted, and whether it must be there."""
        self.call_parameter = ""
        """The one that gets the call itself."""
        self.open = False
        """It takes whatever else there is, too."""
    def bind(self, args: Any) -> dict[str, Any]:
        """Keyword arguments for the function. Raises `BadArgument`."""
        if not isinstance(args, dict):
            raise unfit("the arguments", "an object", args)
        bound = {}
        for name, convert, required in self.members:
            value = args.get(name, _MISSING)
            if value is _MISSING:
                if required:
                    raise BadArgument(f"{name} is missing")
            elif convert is None:
                bound[name] = value
            elif value is not None or required or not left_out(convert, name):
                bound[name] = convert(value, name)
        if len(bound) < len(args):
            self._others(args, bound)
        return bound

    def _others(self, args: dict[str, Any], bound: dict[str, Any]) -> None:
        known = [member[0] for member in self.members]
        for name, value in args.items():
            if name not in known:
                if not self.open:
                    raise no_such(name, known)
                bound[name] = value


def signature_of(function: Callable[..., Any], call_type: type, described: dict[str, str]) -> Signature:
    """What a function takes. Raises `RegistrationError` that names the parameter."""
    made = Signature()
    names, defaults, has_rest = _parameters(function)
    annotations = _annotations(function)
    properties: dict[str, Any] = {}
    required = []
    for name in names:
        annotation = annotations.get(name, _MISSING)
        if annotation is call_type:
            made.call_parameter = name
            continue
        form = _form_of_parameter(function, name, annotation, defaults.get(name, _MISSING))
        schema = dict(form.schema)
        if name in described and "description" not in schema:
            schema["description"] = described[name]
        if name in defaults:
            add_default(schema, defaults[name])
        else:
            required.append(name)
        properties[name] = schema
        made.members.append((name, form.convert, name not in defaults))
    made.open = has_rest
    made.schema = {"type": "object", "properties": properties}
    if required:
        made.schema["required"] = required
    if not has_rest:
        made.schema["additionalProperties"] = False
    return made


def free_signature(function: Callable[..., Any], call_type: type, schema: dict[str, Any]) -> Signature:
    """For a tool with a schema of its author's own: arguments go to it as they came."""
    made = Signature()
    made.schema = schema
    made.open = True
    names, defaults, has_rest = _parameters(function)
    annotations = _annotations(function)
    for name in names:
        if annotations.get(name) is call_type:
            made.call_parameter = name
        else:
            made.members.append((name, None, name not in defaults))
    if not has_rest:
        lacking = [name for name in schema.get("properties", ()) if name not in names]
        if lacking:
            raise RegistrationError(
                f"{function.__name__} has no parameter {lacking[0]}, which is in its schema: add it, or **kwargs"
            )
    return made


# Functions


def _parameters(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any], bool]:
    """Names of the parameters, the defaults of those that have one, and whether there is a `**rest`."""
    target = getattr(function, "__func__", function)
    code = getattr(target, "__code__", None)
    if code is None:
        return _inspected(function)
    if code.co_flags & 4:
        raise RegistrationError(f"{function.__name__}: *{_variadic(code)} has no name to be called by: take it away")
    count = code.co_argcount
    names = list(code.co_varnames[:count])
    defaults = dict(zip(names[::-1], (target.__defaults__ or ())[::-1]))
    if target is not function:  # a method: without self
        names = names[1:]
    if code.co_posonlyargcount:
        raise RegistrationError(
            f"{function.__name__}: positional-only parameters cannot be called by name: take the / away"
        )
    names += code.co_varnames[count : count + code.co_kwonlyargcount]
    defaults.update(target.__kwdefaults__ or {})
    return names, defaults, bool(code.co_flags & 8)


def _variadic(code: Any) -> str:
    return str(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])


def _inspected(function: Callable[..., Any]) -> tuple[list[str], dict[str, Any], bool]:
    """For what is callable but no function, such as a `functools.partial`."""
    import inspect

    names, defaults, rest = [], {}, False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = True
            continue
        names.append(name)
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
    return names, defaults, rest


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Those that are text are looked up where the function was written."""
    target = getattr(function, "__func__", function)
    found = dict(getattr(target, "__annotations__", None) or {})
    space = getattr(target, "__globals__", {})
    for name, annotation in found.items():
        if isinstance(annotation, str):
            found[name] = resolved(annotation, space, f"{target.__name__}: {name}", _enclosed(target))
    return found


def _enclosed(function: Any) -> dict[str, Any]:
    """What a function sees of the one it was written in."""
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            pass  # not there yet
    return values


def _form_of_parameter(function: Callable[..., Any], name: str, annotation: Any, default: Any) -> Form:
    if annotation is _MISSING:
        if default is _MISSING or default is None:
            return Form({}, None)
        annotation = type(default)
    try:
        return form_of(annotation)
    except RegistrationError as error:
        raise RegistrationError(f"{function.__name__}: {name}: {error}") from None
    except RecursionError:
        raise RegistrationError(f"{function.__name__}: {name}: the type contains itself; give schema=") from None


# protocol


# What hosts offer: as in spec/features.json, which a test holds equal to this.

FEATURES: dict[str, tuple[str, str, str]] = {
    "tools": ("tools", "base", "base"),
    "commands": ("commands", "base", "base"),
    "events": ("events", "base", "base"),
    "more_events": ("events beyond the first five", "call_tool", "base"),
    "raw_events": ("events of the other dialect", "register", "base"),
    "intercept.tool_call": ("interception of tool calls", "base", "base"),
    "intercept.turn_start": ("interception of turns", "base", "interceptor/event"),
    "intercept.assistant_message": ("interception of answers", "base", "interceptor/event"),
    "intercept.before_agent_start": ("interception of the system prompt", "call_tool", "interceptor/event"),
    "intercept.tool_result": ("interception of results", "register", "interceptor/content"),
    "priorities": ("priorities of interceptors", "register", "base"),
    "notes": ("notes", "base", "base"),
    "clear_notes": ("taking notes away", "call_tool", "none"),
    "panels": ("panels", "base", "panel/open"),
    "open_panel": ("panels that open by themselves", "call_tool", "panel/open"),
    "submit": ("prompts by extensions", "call_tool", "base"),
    "tool_prompt": ("prompts with a tool's result", "call_tool", "base"),
    "progress": ("progress of tools", "tool_progress", "tool/progress"),
    "cancel": ("cancellation of calls", "tool_cancel|call_tool", "base"),
    "call_tool": ("calls of other tools", "call_tool", "base"),
    "structured_content": ("structured results", "call_tool", "none"),
    "deferred_tools": ("deferred tools", "call_tool", "base"),
    "activate_tools": ("tools that activate others", "call_tool", "base"),
    "late_registration": ("registration after the start", "base", "register/late"),
    "prompt_sections": ("prompt sections", "register", "base"),
    "shortcuts": ("shortcuts", "register", "base"),
    "message_hooks": ("message hooks", "register", "base"),
    "input_transformers": ("input transformers", "register", "base"),
    "compactors": ("compactors", "register", "base"),
    "providers": ("providers", "register", "base"),
    "provider_models": ("models of a provider's own", "register", "register/models"),
    "services": ("host services", "host_request", "base"),
    "bus": ("messages among extensions", "host_request", "base"),
    "unsubscribe": ("ending a subscription", "host_request", "host/unsubscribe"),
    "show": ("messages to the user", "host_notify", "base"),
    "widgets": ("widgets", "host_notify", "base"),
    "overlays": ("overlays", "host_notify", "base"),
    "status": ("words in the status line", "host_notify", "setStatus"),
    "input_text": ("text in the user's input", "host_notify", "base"),
    "steer": ("steering", "host_notify", "base"),
    "abort": ("stopping the turn", "host_notify", "base"),
}
"""Each with what it is called, and how it is known in the frames and in the jsonrpc dialect."""


class HostInfo:
    """Who is at the other end."""
    __slots__ = ("capabilities", "dialect", "model", "name", "provider", "version")

    def __init__(
        self,
        name: str,
        version: str,
        dialect: str,
        capabilities: Iterable[str] = (),
        provider: str = "",
        model: str = "",
    ) -> None:
        self.name = name
        """`hilt`, `zot` or `piglet`."""
        self.version = version
        """Empty where the host does not say."""
        self.dialect = dialect
        self.capabilities = frozenset(capabilities)
        self.provider = provider
        self.model = model
        """Those at the start; both are empty where the host does not say."""
    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()

    def offers(self, feature: str) -> bool:
        """Raises `KeyError` for a feature that nobody knows."""
        words = FEATURES[feature]
        rule = words[1] if self.dialect == "frames" else words[2]
        if rule == "base" or rule == "none":
            return rule == "base"
        return any(capability in self.capabilities for capability in rule.split("|"))


def known_feature(feature: str) -> str:
    """The feature itself. Raises `RegistrationError` for one that is not in the table."""
    if feature not in FEATURES:
        near = [name for name in FEATURES if feature.split(".")[-1].rstrip("s") in name]
        raise RegistrationError(
            f"there is no feature {feature!r}; {'did you mean ' + near[0] if near else 'see FEATURES'}"
        )
    return feature


def lacking(host: HostInfo, wanted: Iterable[tuple[str, str]]) -> list[str]:
    """What the host does not offer of what is wanted, in words: `shortcuts (ctrl+g)`."""
    details: dict[str, list[str]] = {}
    for used, detail in wanted:
        feature = used
        if feature in ("events", "more_events") and not has_event(host.dialect, detail):
            feature = "events"
        elif host.offers(feature):
            continue
        told = details.setdefault(feature, [])
        if detail and detail not in told:
            told.append(detail)
    found = [(feature, details[feature]) for feature in FEATURES if feature in details]
    return [FEATURES[feature][0] + (f" ({', '.join(told)})" if told else "") for feature, told in found]


# Names

_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def tool_name(name: str) -> str:
    if not 1 <= len(name) <= 64 or not _WORD.issuperset(name):
        raise RegistrationError(f"{name!r} is no name for a tool: it has 1 to 64 of A-Z, a-z, 0-9, _ and -")
    return name


def command_name(name: str) -> str:
    plain = name[1:] if name.startswith("/") else name
    if not 1 <= len(plain) <= 64 or any(letter.isspace() for letter in plain):
        raise RegistrationError(f"{name!r} is no name for a command: it has 1 to 64 characters and no spaces")
    return plain


def other_name(name: str, what: str, limit: int = 128) -> str:
    if not 1 <= len(name) <= limit or not name.strip():
        raise RegistrationError(f"{name!r} is no {what}: it has 1 to {limit} characters")
    return name


# Events

FIRST_EVENTS = ("session_start", "turn_start", "assistant_message", "tool_call", "turn_end")
"""Those that every host of the frames dialect has."""
MORE_EVENTS = (
    "session_end",
    "user_prompt_submit",
    "tool_confirmation_requested",
    "permission_decision",
    "tool_result",
    "pre_compact",
    "post_compact",
    "subagent_start",
    "subagent_stop",
)
COUNTERPARTS = {
    "turn_start": "EventTurnStart",
    "turn_end": "EventTurnEnd",
    "assistant_message": "EventStreamDone",
    "tool_call": "EventToolStart",
    "tool_result": "EventToolEnd",
    "user_prompt_submit": "EventMessagePre",
    "post_compact": "EventCompact",
}
"""What an event is called in the jsonrpc dialect; the others it does not have."""
INTERCEPTABLE = ("tool_call", "turn_start", "assistant_message", "before_agent_start", "tool_result")
_STOPS = {"stop": "end", "toolUse": "tool_use"}


def event_name(name: str) -> str:
    if name in FIRST_EVENTS or name in MORE_EVENTS or is_raw(name):
        return name
    raise RegistrationError(
        f"there is no event {name!r}; there are {', '.join((*FIRST_EVENTS, *MORE_EVENTS))}, and those of the "
        "jsonrpc dialect, such as EventTurnStart, or * for all of these"
    )


def is_raw(name: str) -> bool:
    """Whether it is one of the jsonrpc dialect, told as it comes; `*` is all of them."""
    return name.startswith("Event") or name == "*"


def event_feature(name: str) -> str:
    if is_raw(name):
        return "raw_events"
    return "events" if name in FIRST_EVENTS else "more_events"


def has_event(dialect: str, name: str) -> bool:
    """Whether the dialect has it at all, whoever the host is."""
    return dialect == "frames" or is_raw(name) or name in COUNTERPARTS


def translated(name: str, data: dict[str, Any], step: int) -> dict[str, Any]:
    """The members that an event of the jsonrpc dialect has in the other one, as far as they are told."""
    if name == "turn_start":
        return {"step": step}
    if name == "turn_end":
        message = data.get("Assistant") or {}
        reason = message.get("stopReason") or ("error" if not message else "stop")
        members = {"stop": _STOPS.get(reason, reason)}
        return {**members, "error": message["error"]} if message.get("error") else members
    if name == "assistant_message":
        return {"text": message_text(data.get("Message") or {})}
    if name == "user_prompt_submit":
        content = data.get("Content")
        return {"text": content if isinstance(content, str) else message_text({"content": content})}
    if name == "post_compact":
        return {
            "message_count": data.get("After"),
            "token_estimate": data.get("TokensAtCompact"),
            "status": "completed",
        }
    called = {"tool_id": data.get("ToolCallID"), "tool_name": data.get("ToolName")}
    if name == "tool_call":
        return {**called, "tool_args": data.get("Args") or {}}
    failed = bool(data.get("IsError"))
    result = {"content": _blocks(data.get("Result")), "is_error": failed}
    return {**called, "status": "failed" if failed else "completed", "executed": True, "result": result}


def message_text(message: dict[str, Any]) -> str:
    """The text of a message of the jsonrpc dialect."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def own_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block of the jsonrpc dialect, as the SDK has them."""
    if "mime" not in block:
        return block
    return {("mime_type" if name == "mime" else name): value for name, value in block.items()}


def wire_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block as the jsonrpc dialect has them."""
    if "mime_type" not in block:
        return block
    return {("mime" if name == "mime_type" else name): value for name, value in block.items()}


def _blocks(told: Any) -> list[Any]:
    found = told.get("content") if isinstance(told, dict) else told
    return found if isinstance(found, list) else []


# runner


_TICK = 0.002
"""Seconds; a handler that is still at work after one to two of them loses the reading."""
_DROWSY = 25
"""Ticks without a call after which the watchman sleeps until there is one."""
_SLOW = 0.001
"""Seconds from which on a handler is run beside the reading."""
_THREADS = 256
"""Handlers at work at the same time; more wait."""
_SPARE = 8
"""Threads that are kept for the next time."""


class Pace:
    """How quick a handler was the last time."""
    __slots__ = ("slow",)

    def __init__(self) -> None:
        self.slow = False


class Job:
    """A handler to be run, with all it takes. `work` never raises."""
    __slots__ = ("pace", "work")

    def __init__(self, work: Callable[[], None], pace: Pace) -> None:
        self.work = work
        self.pace = pace


class Runner:
    def __init__(
        self, read: Callable[[], bytes | None], receive: Callable[[bytes], Job | None], ended: Callable[[], None]
    ) -> None:
        self._read = read
        self._receive = receive
        self._tell_ended = ended
        """Called once, when nothing more is read. The thread that runs `run` may be busy with a handler then."""
        self._baton: list[int] = []
        """The reading, while its holder runs a handler: whoever takes it out has it. Empty while somebody reads."""
        self._holder = 0
        self._changing = allocate_lock()
        """Held for the few steps in which the members below change together."""
        self._busy = 0
        """Threads that run a handler and do not read."""
        self._waiting: list[Job] = []
        self._spare: list[Any] = []
        self.over = False
        """Nothing more is read."""
        self._ended = _closed_lock()
        self._serial = 0
        """Grows with each handler that is run by the thread that reads."""
        self._running = Pace()
        self._watching = False
        self._dozing = False
        self._alarm = _closed_lock()
        self._coroutines: Coroutines | None = None

    def run(self) -> None:
        """Read until the end of the input, on this thread first. Handlers may still be at work then."""
        if self._lead():
            self._ended.acquire()
            self._ended.release()

    def end(self) -> None:
        """Nothing more is read."""
        with self._changing:
            if self.over:
                return
            self.over = True
            self._ended.release()
            if self._dozing:
                self._dozing = False
                self._alarm.release()
            spare, self._spare = self._spare, []
        for lock in spare:
            lock.release()
        self._tell_ended()

    def settle(self, patience: float) -> bool:
        """Wait until no handler is at work, so long at most; then the loop of the coroutines ends too."""
        deadline = perf_counter() + patience
        while self._busy or self._waiting or (self._coroutines and self._coroutines.open):
            if perf_counter() > deadline:
                return False
            sleep(_TICK)
        if self._coroutines:
            self._coroutines.stop()
        return True

    def step_aside(self) -> None:
        """This thread is about to wait for the host: if the reading is its own, let another go on with it."""
        if self._holder == get_ident() and self._baton:
            self._take_over()

    def start_coroutine(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run one on the loop, which is there from the first one on."""
        with self._changing:
            if self._coroutines is None:
                self._coroutines = Coroutines()
        self._coroutines.start(coroutine)

    # Reading

    def _lead(self) -> bool:
        """Read, and run what is asked, while the reading is this thread's. False at the end, True when it was taken."""
        me = self._holder = get_ident()
        baton = self._baton
        while not self.over:
            line = self._read()
            if line is None:
                self.end()
                return False
            job = self._receive(line)
            if job is None:
                continue
            pace = job.pace
            if pace.slow:
                if self._hand_on(job):
                    self._finish(job)
                    return True
                continue
            baton.append(me)
            self._serial += 1
            self._running = pace
            if self._dozing or not self._watching:
                self._rouse()
            began = perf_counter()
            job.work()
            pace.slow = perf_counter() - began > _SLOW
            try:
                baton.pop()
            except IndexError:  # another reads now
                self._finish(None)
                return True
        return False

    def _follow(self) -> None:
        """The life of a thread: read, lose the reading, wait for it."""
        while self._lead():
            lock = _closed_lock()
            with self._changing:
                if self.over or len(self._spare) >= _SPARE:
                    return
                self._spare.append(lock)
            lock.acquire()

    def _take_over(self) -> None:
        """Another thread shall read: the one that could runs a handler."""
        try:
            self._baton.pop()
        except IndexError:
            return  # the handler has just ended
        self._running.slow = True  # others of its kind need not wait for the watchman
        with self._changing:
            self._busy += 1
        self._another()

    def _hand_on(self, job: Job) -> bool:
        """Let another thread read, so that this one can run the job. False: it has to wait, too many are at work."""
        with self._changing:
            if self._busy >= _THREADS:
                self._waiting.append(job)
                return False
            self._busy += 1
        self._another()
        return True

    def _another(self) -> None:
        self._holder = 0
        with self._changing:
            spare = self._spare.pop() if self._spare else None
        if spare is not None:
            spare.release()
        else:
            start_new_thread(self._follow, ())

    def _finish(self, job: Job | None) -> None:
        """Run a job, if there is one left, and then those that wait."""
        while True:
            if job is not None:
                began = perf_counter()
                job.work()
                job.pace.slow = perf_counter() - began > _SLOW
            with self._changing:
                if not self._waiting:
                    self._busy -= 1
                    return
                job = self._waiting.pop(0)

    # Watching

    def _rouse(self) -> None:
        with self._changing:
            if not self._watching:
                self._watching = True
                start_new_thread(self._watch, ())
            elif self._dozing:
                self._dozing = False
                self._alarm.release()

    def _watch(self) -> None:
        """Take the reading away from a handler that keeps it too long."""
        seen, quiet = -1, 0
        while not self.over:
            sleep(_TICK)
            if self._serial != seen:
                seen, quiet = self._serial, 0
            elif self._baton:
                self._take_over()
            else:
                quiet += 1
            if quiet > _DROWSY:
                quiet = 0
                self._doze(seen)

    def _doze(self, seen: int) -> None:
        """Sleep until a handler is run; none may begin unseen in between."""
        self._dozing = True
        with self._changing:
            if self.over or (self._serial != seen and self._dozing):
                self._dozing = False
                return
        self._alarm.acquire()


def _closed_lock() -> Any:
    lock = allocate_lock()
    lock.acquire()
    return lock


# coroutines


class Coroutines:
    def __init__(self) -> None:
        import asyncio

        self._asyncio = asyncio
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._coroutines: set[Coroutine[Any, Any, None]] = set()
        start_new_thread(self._run, ())

    @property
    def open(self) -> int:
        """How many have begun, or are about to, and have not ended."""
        return len(self._coroutines)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """From any thread."""
        self._coroutines.add(coroutine)
        self._loop.call_soon_threadsafe(self._begin, coroutine)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        self._asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._done(ended, coroutine))

    def _done(self, task: asyncio.Task[None], coroutine: Coroutine[Any, Any, None]) -> None:
        self._tasks.discard(task)
        self._coroutines.discard(coroutine)


# calls


class Call:
    """Given to a handler whose parameter has this type."""
    __slots__ = ("_cancelled", "_link", "_listeners", "_waiting", "id", "name")

    def __init__(self, link: Link, call_id: str, name: str) -> None:
        self._link = link
        self.id = call_id
        self.name = name
        """Of the tool."""
        self._cancelled = False
        self._listeners: list[Callable[[], object]] = []
        self._waiting: set[Any] = set()

    @property
    def cancelled(self) -> bool:
        """Nobody waits for the answer any more."""
        return self._cancelled

    def progress(self, text: str) -> None:
        """Show output while the tool still runs. A host that cannot leaves it out."""
        self._link.progress(self.id, text)

    def on_cancel(self, function: Callable[[], object]) -> Callable[[], object]:
        """Have it called when the call is cancelled; at once if it was already."""
        self._listeners.append(function)
        if self._cancelled:
            self.cancel()
        return function

    def wait(self, seconds: float) -> bool:
        """Sleep so long, or until the call is cancelled: then it is True."""
        from _thread import allocate_lock

        self._link.runner.step_aside()
        lock = allocate_lock()
        lock.acquire()
        self._waiting.add(lock)
        if not self._cancelled:
            lock.acquire(timeout=max(seconds, 0.0))
        self._waiting.discard(lock)
        return self._cancelled

    async def sleep(self, seconds: float) -> bool:
        """The same in a coroutine."""
        import asyncio

        loop, event = asyncio.get_running_loop(), asyncio.Event()
        self.on_cancel(lambda: loop.call_soon_threadsafe(event.set))
        await asyncio.wait([asyncio.ensure_future(event.wait())], timeout=seconds)  # noqa: TID251  # since 3.10
        return self._cancelled

    def call_tool(self, name: str, args: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Result:
        """Run another tool on behalf of this call. Raises `NotOffered`; that the tool failed is in the result."""
        return self._link.call_tool(name, dict(args or {}), self.id, timeout)

    @property
    def aio(self) -> Aio:
        """The same for coroutines: `await call.aio.call_tool(…)`."""
        return Aio(self)

    def cancel(self) -> None:
        """The host, or the end of the process, has given it up."""
        self._cancelled = True
        for lock in list(self._waiting):
            if lock.locked():
                lock.release()
        while self._listeners:
            listener = self._listeners.pop(0)
            try:
                listener()
            except Exception as error:  # noqa: BLE001  # the author's; one that fails must not keep the others from it
                log(f"{self.name}: on_cancel failed: {explained(error)}")


# registrations


class Handler(Pace):
    """A function of the author's."""
    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function


class Tool(Handler):
    __slots__ = ("call_parameter", "description", "name", "options", "signature")

    def __init__(
        self,
        name: str,
        description: str,
        signature: Signature,
        function: Callable[..., Any],
        options: dict[str, Any],
    ) -> None:
        super().__init__(function)
        self.name = name
        self.description = description
        self.signature = signature
        self.call_parameter = signature.call_parameter
        self.options = options
        """Those that were given: `deferred`, `exposure`, `interactive`…"""
class Command(Handler):
    __slots__ = ("description", "immediate", "name")

    def __init__(self, name: str, description: str, function: Callable[..., Any], *, immediate: bool) -> None:
        super().__init__(function)
        self.name = name
        self.description = description
        self.immediate = immediate


class Shortcut(Handler):
    __slots__ = ("description", "key")

    def __init__(self, key: str, description: str, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.key = key
        self.description = description


class Listener(Handler):
    __slots__ = ("name", "priority")

    def __init__(self, function: Callable[..., Any], name: str, priority: int) -> None:
        super().__init__(function)
        self.name = name
        """What the jsonrpc dialect calls it; empty is the extension's own."""
        self.priority = priority


class Interceptor(Handler):
    __slots__ = ("event", "name", "priority")

    def __init__(self, event: str, function: Callable[..., Any], priority: int | None, name: str) -> None:
        super().__init__(function)
        self.event = event
        self.priority = priority
        self.name = name
        """Those of one name are one interceptor for the host; empty is the extension's own."""
    @property
    def plain(self) -> bool:
        """One that a subscription of the frames dialect is enough for."""
        return self.priority is None and not self.name and self.event != "tool_result"


class Section:
    __slots__ = ("content", "order", "title", "token_hint")

    def __init__(self, title: str, content: str, order: int, token_hint: int) -> None:
        self.title = title
        self.content = content
        self.order = order
        self.token_hint = token_hint


class Hook(Handler):
    """A message hook, an input transformer or a compactor."""
    __slots__ = ("name", "number")

    def __init__(self, name: str, function: Callable[..., Any], number: int) -> None:
        super().__init__(function)
        self.name = name
        self.number = number
        """Its priority; of a compactor the threshold."""
class ProviderEntry(Handler):
    __slots__ = ("api", "models")

    def __init__(self, api: str, models: list[Model], function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.api = api
        self.models = models


class Registrations:
    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.commands: dict[str, Command] = {}
        self.shortcuts: dict[str, Shortcut] = {}
        self.events: dict[str, list[Listener]] = {}
        self.interceptors: list[Interceptor] = []
        self.sections: dict[str, Section] = {}
        self.message_hooks: list[Hook] = []
        self.input_transformers: list[Hook] = []
        self.compactors: dict[str, Hook] = {}
        self.providers: dict[str, ProviderEntry] = {}
        self.on_ready: list[Handler] = []
        self.on_stop: list[Handler] = []
        self.used: list[str] = []
        self.required: list[str] = []

    def intercepts(self, event: str, name: str | None = None) -> list[Interceptor]:
        """Those to be asked, the highest priority first; with a name only those that the host knows by it."""
        found = [one for one in self.interceptors if one.event == event and (name is None or one.name == name)]
        return sorted(found, key=lambda one: -(one.priority or 0))

    def wanted(self) -> Iterator[tuple[str, str]]:
        """Every feature that is used, with what it is used for."""
        for tool in self.tools.values():
            if tool.options.get("deferred") or tool.options.get("exposure"):
                yield "deferred_tools", tool.name
        for event in self.events:
            yield event_feature(event), event
        for interceptor in self.interceptors:
            yield f"intercept.{interceptor.event}", ""
            if interceptor.priority is not None:
                yield "priorities", ""
        for key in self.shortcuts:
            yield "shortcuts", key
        for title in self.sections:
            yield "prompt_sections", title
        for hook in self.message_hooks:
            yield "message_hooks", hook.name
        for hook in self.input_transformers:
            yield "input_transformers", hook.name
        for name in self.compactors:
            yield "compactors", name
        for api, provider in self.providers.items():
            yield "providers", api
            if provider.models:
                yield "provider_models", ""
        for feature in (*self.used, *self.required):
            yield feature, ""


# lanes


class Waiting:
    """A question to the host that has no answer yet."""
    __slots__ = ("error", "hear", "lock", "value")

    def __init__(self, hear: Callable[[Any], object] | None = None) -> None:
        self.hear = hear
        """Called with the answer before the next line is read."""
        self.lock = allocate_lock()
        self.lock.acquire()
        self.value: Any = None
        self.error: BaseException | None = None

    def answer(self, value: Any, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error
        self.lock.release()


class Lane:
    """Things to be done one after the other, in the order in which they came."""
    __slots__ = ("busy", "lock", "pace", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.busy = False
        self.lock = allocate_lock()
        self.pace = Pace()

    def add(self, work: Callable[[], None]) -> Job | None:
        """A job that does all that waits; None when one is at it."""
        with self.lock:
            self.waiting.append(work)
            if self.busy:
                return None
            self.busy = True
        return Job(self._drain, self.pace)

    def _drain(self) -> None:
        while True:
            with self.lock:
                if not self.waiting:
                    self.busy = False
                    return
                work = self.waiting.pop(0)
            work()


# link


_GONE = "the host has gone"


class Link:
    dialect = ""

    def __init__(self, ext: Extension, pipes: Pipes) -> None:
        self.ext = ext
        self.pipes = pipes
        self.registered = ext._registered
        self.runner = Runner(pipes.read, self._line, self._ended)
        self.on_end: Callable[[], object] | None = None
        """Called once when the host has ended it, or has gone."""
        self.host: HostInfo | None = None
        """None until the host has said who it is."""
        self.exit_code = 0
        self.complaint = ""
        """What is missing, in one sentence for the user."""
        self.calls: dict[Any, Call] = {}
        """Tool calls under way whose handlers want to know of them, by what the host calls them."""
        self.panels: dict[str, Panel] = {}
        self.topics: dict[int, Callable[[Any], object]] = {}
        self.cancellable: dict[Any, Reply] = {}
        """Answers of models that are under way, by the question."""
        self.step = 0
        """Of the prompt, counted by the events of the jsonrpc dialect."""
        self._questions: dict[Any, Waiting] = {}
        self._count = 0
        self._counting = allocate_lock()
        self._lanes: dict[str, Lane] = {}
        self._said: set[str] = set()

    # The life of a connection

    def open(self) -> None:
        """Say what there is to say before the host has spoken."""
        raise NotImplementedError

    def run(self) -> None:
        """Until the host ends it, or its end of the pipe is closed."""
        self.open()
        self.runner.run()

    def close(self) -> None:
        """Nothing more is read, and nobody waits for anything any more."""
        self.runner.end()

    def _ended(self) -> None:
        for call in list(self.calls.values()):
            start_new_thread(call.cancel, ())  # which calls functions of the author's
        for key in list(self._questions):
            waiting = self._questions.pop(key, None)
            if waiting is not None:
                waiting.answer(None, NotConnected(_GONE))
        if self.on_end is not None:
            self.on_end()

    def finish(self, patience: float) -> bool:
        """Call what the author wants to be done at the end, and let handlers end. False: they did not in time."""
        deadline = perf_counter() + patience
        handlers = list(self.registered.on_stop)
        if handlers:
            waiting = Waiting()

            def work() -> None:
                for handler in handlers:
                    self.attempt(handler.function)
                waiting.answer(None)

            start_new_thread(work, ())
            if not waiting.lock.acquire(timeout=patience):
                return False
        return self.runner.settle(max(deadline - perf_counter(), 0.0))

    def _line(self, line: bytes) -> Job | None:
        try:
            message = decoded(line)
        except ValueError:
            if line.strip():
                self.say_once("a line of the host is no JSON, and was left out")
            return None
        if not isinstance(message, dict):
            return None
        try:
            return self.receive(message)
        except Exception as error:  # noqa: BLE001  # one line that cannot be dealt with costs itself only
            log_trouble(error)
            return None

    def receive(self, message: dict[str, Any]) -> Job | None:
        """One message of the host: what is to be run for it, if anything. Runs nothing of the author's itself."""
        raise NotImplementedError

    def send(self, message: dict[str, Any]) -> None:
        """Raises `Unwritable`, `LineTooLong`."""
        self.pipes.write(encoded(message))

    # What the host offers

    def meet(self, host: HostInfo) -> None:
        """The host has said who it is: find out what is missing, and whether the extension can do without."""
        self.host = host
        required = lacking(host, ((feature, "") for feature in self.registered.required))
        self.ext.missing = lacking(host, self.registered.wanted())
        if required:
            self.exit_code = 1
            self.complaint = f"{self.ext.name}: {host} does not offer what it needs: {', '.join(required)}"
        elif self.ext.missing:
            self.complaint = f"{self.ext.name}: {host} does not offer: {', '.join(self.ext.missing)}"

    def tell_missing(self) -> None:
        if self.complaint:
            for words in self.ext.missing:
                log(f"{self.ext.name}: {self.host} does not offer {words}")
            self.notify(self.complaint, "error" if self.exit_code else "warn")

    def unregistered(self, kind: str, error: ValueError) -> None:
        """Something that no line can carry: it costs itself only, and is said."""
        text = f"{self.ext.name}: a {kind.replace('_', ' ')} cannot be registered: {error}"
        log(text)
        self.notify(text, "error")

    def offers(self, feature: str) -> bool:
        return self.host is not None and self.host.offers(feature)

    def need(self, feature: str) -> None:
        """Raises `NotOffered`."""
        if self.host is None:
            raise NotConnected("the host has not answered yet: wait for on_ready")
        if not self.host.offers(feature):
            raise NotOffered(f"{self.host} does not offer {FEATURES[feature][0]}")

    def can(self, feature: str) -> bool:
        """Whether it is offered; that it is not is in the log, once."""
        if self.host is not None and self.host.offers(feature):
            return True
        self.say_once(f"{self.host or 'the host'} does not offer {FEATURES[feature][0]}: left out")
        return False

    def say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log(f"{self.ext.name}: {text}")

    def started(self) -> Job | None:
        """The handshake is over: what the author wants to be done then."""
        handlers = list(self.registered.on_ready)
        if not handlers:
            return None

        def work() -> None:
            for handler in handlers:
                self.attempt(handler.function)

        pace = Pace()
        pace.slow = True
        return Job(work, pace)

    # Running handlers

    def invoke(self, function: Callable[..., Any], args: tuple[Any, ...], answer: Answer, failed: Failed) -> None:
        """Call the author's function and answer with what it returns. Never raises."""
        try:
            value = function(*args)
        except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
            self._failed(failed, error)
            return
        self._settle(value, answer, failed)

    def _settle(self, value: Any, answer: Answer, failed: Failed) -> None:
        if hasattr(value, "__await__"):
            self.runner.start_coroutine(self._awaited(value, answer, failed))
            return
        try:
            answer(value)
        except Exception as error:  # noqa: BLE001  # what it returned cannot be used
            self._failed(failed, error)

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any], answer: Answer, failed: Failed) -> None:
        try:
            value = await coroutine
        except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
            self._failed(failed, error)
            return
        try:
            answer(value)
        except Exception as error:  # noqa: BLE001  # what it returned cannot be used
            self._failed(failed, error)

    def value_of(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the author's function returns, also when that is a coroutine. Raises what it raises."""
        value = function(*args)
        if not hasattr(value, "__await__"):
            return value
        waiting = Waiting()

        async def wait() -> None:
            try:
                waiting.answer(await value)
            except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
                waiting.answer(None, error)

        self.runner.step_aside()
        self.runner.start_coroutine(wait())
        waiting.lock.acquire()
        if waiting.error is not None:
            raise waiting.error
        return waiting.value

    def attempt(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function of the author's that nobody waits for."""
        try:
            self.value_of(function, *args)
        except BaseException as error:  # noqa: BLE001  # it is in the log, and the next one has its turn
            log_trouble(error)

    def _failed(self, failed: Failed, error: BaseException) -> None:
        log_trouble(error)
        failed(error)

    def lane(self, name: str, work: Callable[[], None]) -> Job | None:
        """To be done after all that came before it in the lane."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane()
        return lane.add(work)

    def is_busy(self, name: str) -> bool:
        """Whether something is done in the lane, or waits to be."""
        lane = self._lanes.get(name)
        return lane is not None and lane.busy

    # Tools

    def tool_job(self, key: Any, call_id: str, tool: Tool, args: Any) -> Job:
        call = None
        if tool.call_parameter:
            call = self.calls[key] = Call(self, call_id, tool.name)  # before the next line, which may cancel it

        def work() -> None:
            self._run_tool(key, call, tool, args)

        return Job(work, tool)

    def _run_tool(self, key: Any, call: Call | None, tool: Tool, args: Any) -> None:
        try:
            values = tool.signature.bind(args)
            if call is not None:
                values[tool.call_parameter] = call
            value = tool.function(**values)
            if hasattr(value, "__await__"):
                self.runner.start_coroutine(self._awaited(value, *self._tool_answers(key)))
                return
            self.send_result(key, result_of(value))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the model gets its answer
            self._tool_failed(key, error)
        if call is not None:
            self.calls.pop(key, None)

    def _tool_answers(self, key: Any) -> tuple[Answer, Failed]:
        def answer(value: Any) -> None:
            self.send_result(key, result_of(value))
            self.calls.pop(key, None)

        def failed(error: BaseException) -> None:
            self._send_failure(key, error)
            self.calls.pop(key, None)

        return answer, failed

    def _tool_failed(self, key: Any, error: BaseException) -> None:
        log_trouble(error)
        self._send_failure(key, error)

    def _send_failure(self, key: Any, error: BaseException) -> None:
        self.send_result(key, failure(error))

    def send_result(self, key: Any, result: Result) -> None:
        raise NotImplementedError

    # Questions to the host

    def ask(
        self,
        send: Callable[[int], None],
        cancel: Callable[[int], None],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        """Send a question by its number and wait for the answer. Raises `HostError`, `TimeoutError`, `NotConnected`."""
        if self.pipes.closed or self.runner.over:
            raise NotConnected(_GONE)
        waiting = Waiting(hear)
        with self._counting:
            self._count += 1
            number = self._count
        self._questions[number] = waiting
        try:
            send(number)
        except Exception:
            del self._questions[number]
            raise
        self.runner.step_aside()
        if not waiting.lock.acquire(timeout=-1 if timeout is None else max(timeout, 0.0)):
            if self._questions.pop(number, None) is not None:
                cancel(number)
                raise TimeoutError(f"the host did not answer within {timeout:g} s")
            waiting.lock.acquire()
        if waiting.error is not None:
            raise waiting.error
        return waiting.value

    def answered(self, number: Any, value: Any, error: Any = None) -> None:
        """The host's answer to one of these; what nobody waits for is dropped."""
        waiting = self._questions.pop(number, None)
        if waiting is None:
            return
        if error is None:
            if waiting.hear is not None:
                waiting.hear(value)
            waiting.answer(value)
            return
        told = error if isinstance(error, dict) else {"message": str(error)}
        waiting.answer(None, HostError(_code(told.get("code")), str(told.get("message") or "the host gave no reason")))

    def request(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        """A host service. Raises as `ask` does, and `NotOffered`."""
        raise NotImplementedError

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """A notification by method."""
        raise NotImplementedError

    def call_tool(self, name: str, args: dict[str, Any], parent: str, timeout: float | None) -> Result:
        raise NotImplementedError

    # What the dialects say each in their own way

    def register(self, kind: str, entry: Any) -> None:
        """Tell the host of something that was registered after the handshake."""
        raise NotImplementedError

    def notify(self, text: str, level: str) -> None:
        raise NotImplementedError

    def clear_notes(self) -> None:
        raise NotImplementedError

    def show(self, text: str) -> None:
        raise NotImplementedError

    def submit(self, text: str) -> None:
        raise NotImplementedError

    def progress(self, call_id: str, text: str) -> None:
        raise NotImplementedError

    def open_panel(self, panel: Panel) -> None:
        raise NotImplementedError

    def render_panel(self, panel: Panel, content: dict[str, Any]) -> None:
        raise NotImplementedError

    def close_panel(self, panel: Panel) -> None:
        raise NotImplementedError

    # Panels

    def panel_job(self, panel_id: Any, work: Callable[[Panel], None]) -> Job | None:
        """What happens to an open panel, one thing after the other."""
        panel = self.panels.get(panel_id)
        if panel is None:
            return None
        return self.lane(f"panel {panel_id}", lambda: self.attempt(work, panel))

    def show_panel(self, panel: Panel) -> None:
        """Where a panel cannot be opened, what it would show is a message."""
        self.show(panel.in_words())

    def panel_closed(self, panel_id: Any) -> Job | None:
        job = self.panel_job(panel_id, lambda panel: panel.closed())
        self.forget_panel(panel_id)
        return job

    def forget_panel(self, panel_id: Any) -> None:
        self.panels.pop(panel_id, None)
        self._lanes.pop(f"panel {panel_id}", None)

    # Events

    def event_job(self, name: str, data: dict[str, Any]) -> Job | None:
        listeners = self.registered.events.get(name)
        if not listeners:
            return None

        event = Event(name, data)

        def work() -> None:
            for listener in listeners:
                self.attempt(listener.function, event)

        return self.lane("events", work)


def log_trouble(error: BaseException) -> None:
    """The traceback of what an author's function raised, without the SDK's own part of it."""
    if isinstance(error, ToolError):
        return
    import traceback

    log("".join(traceback.format_exception(type(error), error, _own(error))).rstrip())


def _code(told: Any) -> int:
    return told if isinstance(told, int) else 0


def _own(error: BaseException) -> Any:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    return trace


# interception


_GUARDED = ("tool_call", "turn_start", "assistant_message")
"""Where a failure refuses. Elsewhere there is nothing to refuse, and all stays as it was."""


class Decision:
    """What came out. The question itself has what was changed."""
    __slots__ = ("block", "changed", "text")

    def __init__(self) -> None:
        self.block: Block | None = None
        self.changed = False
        self.text: str | None = None
        """What takes the place of a result's text, when that is all that was changed."""
def decide(link: Link, interceptors: Sequence[Interceptor], asked: Intercepted) -> Decision:
    """Ask each in order; the first refusal ends it, and what one changed is what the next one sees."""
    decision = Decision()
    for interceptor in interceptors:
        try:
            said = link.value_of(interceptor.function, asked)
            if isinstance(said, Block):
                decision.block = said
                return decision
            if _changed(asked, said):
                decision.changed = True
                decision.text = said if isinstance(said, str) else None
        except BaseException as error:  # noqa: BLE001  # a guard that fails is no permission
            log_trouble(error)
            if asked.event in _GUARDED:
                decision.block = Block(f"{link.ext.name}'s guard failed: {explained(error)}")
                return decision
    return decision


def _changed(asked: Intercepted, said: Any) -> bool:
    """Do what was said to the question. Raises `TypeError` for what has no meaning there."""
    if said is None:
        return False
    event = asked.event
    if event == "tool_call" and isinstance(said, Rewrite):
        asked.args = said.args
    elif event == "assistant_message" and isinstance(said, (Replace, str)):
        asked.text = said if isinstance(said, str) else said.text
    elif event == "before_agent_start" and isinstance(said, str):
        asked.system_prompt = said
    elif event == "tool_result":
        _replace_result(asked, said)
    else:
        raise TypeError(f"an interceptor of {event} cannot return {type(said).__name__}")
    return True


def _replace_result(asked: Intercepted, said: Any) -> None:
    """A text takes the place of all text, a result that of everything."""
    if isinstance(said, str):
        others = [block for block in asked.content if block.get("type") != "text"]
        asked.content = [{"type": "text", "text": said}, *others]
    else:
        result = result_of(said)
        asked.content = result.content
        asked.is_error = result.is_error
    asked.text = Result(content=asked.content).text


# provider


class Model:
    """A model that only the extension knows. Costs are in US dollars for a million tokens."""
    __slots__ = ("context_window", "cost", "id", "max_tokens", "name", "reasoning")

    def __init__(
        self,
        id: str,  # noqa: A002  # what everybody calls it
        name: str = "",
        context_window: int = 0,
        max_tokens: int = 0,
        *,
        reasoning: bool = False,
        cost: Mapping[str, float] | None = None,
    ) -> None:
        self.id = id
        self.name = name or id
        self.context_window = context_window
        self.max_tokens = max_tokens
        self.reasoning = reasoning
        self.cost = dict(cost or {})
        """`input`, `output`, `cacheRead`, `cacheWrite`."""
    def fields(self) -> dict[str, Any]:
        told: dict[str, Any] = {"id": self.id, "name": self.name}
        if self.context_window:
            told["contextWindow"] = self.context_window
        if self.max_tokens:
            told["maxTokens"] = self.max_tokens
        if self.reasoning:
            told["reasoning"] = True
        if self.cost:
            told["cost"] = self.cost
        return told


class Request:
    """One answer that is wanted. Messages, tools and options are as they came."""
    __slots__ = ("data", "messages", "model", "options", "system", "tools")

    def __init__(self, params: dict[str, Any]) -> None:
        self.data = params
        self.model: dict[str, Any] = params.get("model") or {}
        self.system: str = params.get("system") or ""
        self.messages: list[dict[str, Any]] = params.get("messages") or []
        self.tools: list[dict[str, Any]] = params.get("tools") or []
        self.options: dict[str, Any] = params.get("options") or {}

    @property
    def text(self) -> str:
        """What was said last by the user."""
        for message in reversed(self.messages):
            if message.get("role", "user") == "user" and "toolCallId" not in message:
                return message_text(message) or message_text({"content": message.get("blocks")})
        return ""


class Reply:
    """The answer. Each piece is shown at once; the whole is put together when the function returns."""
    __slots__ = ("_calls", "_link", "_number", "_parts", "_request", "_usage", "cancelled")

    def __init__(self, link: Link, request: Request, number: Any) -> None:
        self._link = link
        self._request = request
        self._number = number
        self._parts: list[dict[str, Any]] = []
        self._calls: dict[str, int] = {}
        self._usage: dict[str, Any] = {}
        self.cancelled = False
        """Nobody waits for it any more."""
    def text(self, delta: str) -> None:
        self._add("text", "text_delta", delta)

    def thinking(self, delta: str) -> None:
        self._add("thinking", "thinking_delta", delta)

    def tool_call_delta(self, id: str, name: str, delta: str) -> None:  # noqa: A002  # what everybody calls it
        """A piece of the arguments of a call, as JSON text. `tool_call` with the same id ends it."""
        first = id not in self._calls
        index = self._index(id)
        piece: dict[str, Any] = {"type": "toolcall_delta", "index": index, "delta": delta}
        if first:
            piece["tool"] = {"id": id, "name": name, "arguments": ""}
        self._send(piece)

    def tool_call(self, name: str, args: Mapping[str, Any] | None = None, *, id: str = "") -> str:  # noqa: A002
        """The model calls a tool. The id of the call."""
        call = id or f"call_{self._number}_{len(self._parts)}"
        index = self._index(call)
        self._parts[index] = {"id": call, "name": name, "arguments": dict(args or {})}
        tool = {"id": call, "name": name, "arguments": encoded_text(args or {})}
        self._send({"type": "toolcall_end", "index": index, "tool": tool})
        return call

    def usage(self, input: int, output: int, *, cache_read: int = 0, cache_write: int = 0, cost: float = 0) -> None:  # noqa: A002
        """Tokens that were used, and what they cost."""
        self._usage = {
            "inputTokens": input,
            "outputTokens": output,
            "cacheReadTokens": cache_read,
            "cacheWriteTokens": cache_write,
            "cost": cost,
        }

    def message(self, stop: str = "") -> dict[str, Any]:
        """The whole, as the host wants it."""
        parts = [part for part in self._parts if part]
        model = self._request.model
        return {
            "content": parts,
            "model": model.get("id") or "",
            "provider": model.get("provider") or model.get("api") or "",
            "usage": self._usage,
            "stopReason": stop or ("toolUse" if self._calls else "stop"),
            "timestamp": _now(),
        }

    def _add(self, kind: str, piece: str, delta: str) -> None:
        if not delta:
            return
        if not self._parts or kind not in self._parts[-1]:
            self._parts.append({kind: ""})
        self._parts[-1][kind] += delta
        self._send({"type": piece, "index": len(self._parts) - 1, "delta": delta})

    def _index(self, call: str) -> int:
        if call not in self._calls:
            self._calls[call] = len(self._parts)
            self._parts.append({})
        return self._calls[call]

    def _send(self, piece: dict[str, Any]) -> None:
        self._link.tell("provider/delta", {"requestId": self._number, **piece})


def _now() -> str:
    from time import gmtime, strftime

    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())


# panels


_made = 0


class Panel:
    id = ""
    """By which the host knows it. Made up, unless the class has one: then a new process goes on with the old panel."""
    title = ""
    footer = ""
    _link: Link | None = None
    _shown: dict[str, Any] | None = None
    _width = 80
    _height = 24

    def render(self, width: int, height: int) -> Sequence[str] | str:  # noqa: ARG002  # for those who extend it
        """The lines to be shown. The size is 80 × 24 until the host has told it."""
        return ()

    def on_key(self, key: str, text: str) -> object:
        """A key was pressed: `up`, `enter`…, or `rune` with the character in `text`."""
    def on_resize(self, width: int, height: int) -> object:
        """There is this much room now."""
    def on_close(self) -> object:
        """The user has closed it."""
    def update(self) -> None:
        """Draw it anew, if that changes anything. One that is not open is left alone."""
        link = self._link
        if link is None:
            return
        content = self._content()
        before = self._shown or {}
        if content == before:
            return
        self._shown = content
        told = {name: value for name, value in content.items() if name != "title" or value != before.get("title")}
        link.render_panel(self, told)

    def close(self) -> None:
        """Close it. One that is not open is left alone."""
        link, self._link = self._link, None
        if link is not None:
            link.close_panel(self)

    @property
    def is_open(self) -> bool:
        return self._link is not None

    # What the link does with it

    def bind(self, link: Link) -> dict[str, Any]:
        """It is about to be opened: what shall be shown."""
        if not self.id:
            global _made
            _made += 1
            self.id = f"panel-{_made}"
        self._link = link
        self._shown = self._content()
        return self._shown

    def pressed(self, key: str, text: str) -> None:
        link = self._link
        if link is not None:
            link.value_of(self.on_key, key, text)
            self.update()

    def resized(self, width: int, height: int) -> None:
        link = self._link
        self._width, self._height = width, height
        if link is not None:
            link.value_of(self.on_resize, width, height)
            self.update()

    def closed(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.value_of(self.on_close)

    def in_words(self) -> str:
        """For where it cannot be opened."""
        content = self._content()
        return "\n".join([content["title"], *content["lines"], content["footer"]]).strip("\n")

    def _content(self) -> dict[str, Any]:
        lines = self.render(self._width, self._height)
        shown = lines.split("\n") if isinstance(lines, str) else [str(line) for line in lines]
        return {"title": self.title, "lines": shown, "footer": self.footer}


# methods


INVALID, UNKNOWN, FAILED = -32602, -32601, -32603


# Registering


def kinds(registered: Registrations, name: str, *, plain_too: bool) -> Iterator[tuple[str, Params]]:
    """All that is registered by kind, with its members. `plain_too`: also what the frames dialect subscribes to."""
    for section in registered.sections.values():
        yield "prompt_section", section_fields(section)
    yield from interceptor_kinds(registered, name, plain_too=plain_too)
    yield from listener_kinds(registered, name, plain_too=plain_too)
    for shortcut in registered.shortcuts.values():
        yield "shortcut", {"key": shortcut.key, "description": shortcut.description}
    for hook in sorted(registered.message_hooks, key=_hook_number):
        yield "message_hook", {"name": hook.name, "priority": hook.number}
    for hook in sorted(registered.input_transformers, key=_hook_number):
        yield "input_transformer", {"name": hook.name, "priority": hook.number}
    for hook in registered.compactors.values():
        yield "compactor", {"name": hook.name, "threshold": hook.number}
    for provider in registered.providers.values():
        yield "provider", {"api": provider.api, "models": [model.fields() for model in provider.models]}


def kind_of(registered: Registrations, name: str, kind: str, entry: Any) -> tuple[str, Params]:
    """One thing that was registered late, as a kind and its members."""
    if kind == "interceptor":
        for group, fields in interceptor_kinds(registered, name, plain_too=True):
            if fields["name"] == (entry.name or name):
                return group, fields
    if kind == "event":
        own = registered.events[entry][-1].name or name
        for group, fields in listener_kinds(registered, name, plain_too=True):
            if fields["name"] == own:
                return group, fields
    if kind == "prompt_section":
        return kind, section_fields(entry)
    if kind == "shortcut":
        return kind, {"key": entry.key, "description": entry.description}
    if kind == "compactor":
        return kind, {"name": entry.name, "threshold": entry.number}
    if kind == "provider":
        return kind, {"api": entry.api, "models": [model.fields() for model in entry.models]}
    return kind, {"name": entry.name, "priority": entry.number}


def section_fields(section: Any) -> Params:
    fields = {"title": section.title, "content": section.content, "order": section.order}
    return {**fields, "tokenHint": section.token_hint} if section.token_hint else fields


def interceptor_kinds(registered: Registrations, name: str, *, plain_too: bool) -> Iterator[tuple[str, Params]]:
    """Interceptors of one name are one for the host."""
    groups: dict[str, Params] = {}
    for one in registered.interceptors:
        if not plain_too and one.plain:
            continue
        group = groups.setdefault(one.name, {"name": one.name or name, "priority": 0, "events": []})
        if one.priority is not None:
            group["priority"] = one.priority
        event = "tool_call" if one.event == "tool_result" else one.event
        if event not in group["events"]:
            group["events"].append(event)
    for group in groups.values():
        if group["events"] == ["tool_call"]:  # as a host would have it that knows of nothing else
            del group["events"]
        yield "interceptor", group


def listener_kinds(registered: Registrations, name: str, *, plain_too: bool) -> Iterator[tuple[str, Params]]:
    """Handlers of one name are one for the host, which is told what events of its own dialect it wants."""
    groups: dict[str, Params] = {}
    for event, listeners in registered.events.items():
        raw = event if is_raw(event) else COUNTERPARTS.get(event) if plain_too else None
        if raw is None:
            continue
        for listener in listeners:
            group = groups.setdefault(listener.name, {"name": listener.name or name, "priority": 0, "events": []})
            group["priority"] = group["priority"] or listener.priority
            group["events"].append(raw)
            if event == "turn_start":
                group["events"].append("EventAgentStart")  # from which steps are counted
    for group in groups.values():
        group["events"] = None if "*" in group["events"] else list(dict.fromkeys(group["events"]))
        yield "event_handler", group


def _hook_number(hook: Any) -> int:
    return int(hook.number)


# Being asked


class Question:
    """One question by method. It is answered once, by `reply` or by `fail`."""
    __slots__ = ("fail", "key", "method", "params", "reply")

    def __init__(
        self, key: Any, method: str, params: Any, reply: Callable[[Any], None], fail: Callable[[int, str], None]
    ) -> None:
        self.key = key
        """By which the host would take it back."""
        self.method = method
        self.params: Params = params
        self.reply = reply
        self.fail = fail

    def job(self, work: Callable[[], Any], pace: Pace) -> Job:
        """A job that answers with what `work` returns, or with why it failed."""
        def run() -> None:
            try:
                self.reply(work())
            except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
                self.failed(error)

        return Job(run, pace)

    def failed(self, error: BaseException) -> None:
        log_trouble(error)
        self.fail(FAILED, explained(error))


def asked(link: Link, question: Question) -> Job | None:
    answerer = _ANSWERERS.get(question.method)
    if answerer is None:
        question.fail(UNKNOWN, f"method not found: {question.method}")
        return None
    if not isinstance(question.params, dict):
        question.fail(INVALID, f"{question.method}: params must be an object")
        return None
    return answerer(link, question)


def _on_message(link: Link, question: Question) -> Job | None:
    params = question.params
    hooks = sorted(link.registered.message_hooks, key=_hook_number)
    message = params.get("message") or ""

    def work() -> Params:
        said = [link.value_of(hook.function, message) for hook in hooks]
        text = "\n".join(one for one in said if one)
        return {"injection": text} if text else {}

    return question.job(work, hooks[0] if hooks else Pace())


def _transform(link: Link, question: Question) -> Job | None:
    params = question.params
    hooks = sorted(link.registered.input_transformers, key=_hook_number)

    def work() -> Params:
        text = params.get("input") or ""
        for hook in hooks:
            said = link.value_of(hook.function, text)
            if isinstance(said, Handled):
                return {"output": "", "handled": True}
            text = text if said is None else said
        return {"output": text, "handled": False}

    return question.job(work, hooks[0] if hooks else Pace())


def _compact(link: Link, question: Question) -> Job | None:
    hooks = list(link.registered.compactors.values())
    if not hooks:
        question.fail(INVALID, "there is no compactor")
        return None
    hook = hooks[-1]
    messages = question.params.get("messages") or []
    return question.job(lambda: {"messages": link.value_of(hook.function, messages)}, hook)


def _stream(link: Link, question: Question) -> Job | None:

    params = question.params
    request = Request(params)
    entry = link.registered.providers.get(request.model.get("api") or "")
    if entry is None and len(link.registered.providers) == 1:
        entry = next(iter(link.registered.providers.values()))
    if entry is None:
        question.fail(INVALID, f"unknown API: {request.model.get('api')}")
        return None
    answer = Reply(link, request, params.get("requestId"))
    link.cancellable[question.key] = answer
    function = entry.function

    def work() -> Params:
        try:
            whole = link.value_of(function, request, answer)
        finally:
            link.cancellable.pop(question.key, None)
        return {"message": whole if isinstance(whole, dict) else answer.message()}

    pace = Pace()
    pace.slow = True  # a model that answers at once is rare
    return question.job(work, pace)


def _before(link: Link, question: Question) -> Job | None:
    params = question.params
    asked_about = Intercepted("tool_call", params)
    asked_about.tool = params.get("toolName") or ""
    asked_about.args = params.get("args") or {}
    asked_about.id = params.get("callId") or ""
    asked_about.origin = params.get("origin") or ""

    def verdict(decision: Decision) -> Params:
        if decision.block is not None:
            return {"allow": False, "preview": decision.block.reason} if decision.block.reason else {"allow": False}
        return {"allow": True, "args": asked_about.args} if decision.changed else {"allow": True}

    return _decided(link, question, asked_about, verdict)


def _after(link: Link, question: Question) -> Job | None:
    params = question.params
    about = Intercepted("tool_result", params)
    details = params.get("details")
    content = params.get("content")
    about.tool = params.get("toolName") or ""
    about.id = params.get("callId") or ""
    about.is_error = bool(params.get("isError"))
    about.content = _result_blocks(content if content is not None else details)
    about.text = Result(content=about.content).text

    def verdict(decision: Decision) -> Params:
        if not decision.changed:
            return {"details": details}
        if decision.text is not None and content is not None:
            return {"content": decision.text}
        blocks = [wire_block(block) for block in about.content]
        told: Params = {"content": blocks, "isError": about.is_error}
        return told if content is not None else {"details": {**_members(details), "content": blocks}}

    return _decided(link, question, about, verdict)


def _event(link: Link, question: Question) -> Job | None:
    params = question.params
    about = Intercepted(params.get("event") or "", params)
    about.step = params.get("step") or 0
    about.text = params.get("text") or ""
    about.system_prompt = params.get("systemPrompt") or ""

    def verdict(decision: Decision) -> Params:
        if decision.block is not None:
            return {"allow": False, "reason": decision.block.reason}
        if not decision.changed:
            return {"allow": True}
        if about.event == "assistant_message":
            return {"allow": True, "text": about.text}
        return {"allow": True, "systemPrompt": about.system_prompt}

    return _decided(link, question, about, verdict)


def _decided(link: Link, question: Question, about: Intercepted, verdict: Callable[[Decision], Params]) -> Job | None:
    name = question.params.get("name") or ""
    group = None if not name else "" if name == link.ext.name else name
    interceptors = link.registered.intercepts(about.event, group)
    if link.dialect == "frames":  # there the others are asked by a frame of their own
        interceptors = [one for one in interceptors if not one.plain]
    if not interceptors:
        question.reply(verdict(Decision()))
        return None

    def work() -> Params:
        return verdict(decide(link, interceptors, about))

    return question.job(work, interceptors[0])


def _dispatch(link: Link, question: Question) -> Job | None:
    """An event. It is answered once its handlers are done, so that the next one comes after them."""
    params = question.params
    raw, data = params.get("type") or "", params.get("data") or {}
    if raw == "EventAgentStart":
        link.step = 0
    elif raw == "EventTurnStart":
        link.step += 1
    step = link.step

    def work() -> None:
        try:
            _handle(link, raw, data, step)
            question.reply({"action": None})
        except BaseException as error:  # noqa: BLE001  # whatever it is, the host gets its answer
            question.failed(error)

    return link.lane("events", work)


def _handle(link: Link, raw: str, data: Params, step: int) -> None:
    """Tell each handler. All are told; then the first failure counts."""
    events = link.registered.events
    trouble = None
    told = [(listener, Event(raw, data)) for name in (raw, "*") for listener in events.get(name, ())]
    for name, counterpart in COUNTERPARTS.items():
        if counterpart == raw and link.dialect == "jsonrpc":
            event = Event(name, translated(name, data, step))
            told += [(listener, event) for listener in events.get(name, ())]
    for listener, event in told:
        try:
            link.value_of(listener.function, event)
        except BaseException as error:  # noqa: BLE001  # the others are told all the same
            trouble = trouble or error
    if trouble is not None:
        raise trouble


def _result_blocks(told: Any) -> list[Params]:
    found = told.get("content") if isinstance(told, dict) else told
    if isinstance(found, str):
        return [{"type": "text", "text": found}]
    return [own_block(block) for block in found if isinstance(block, dict)] if isinstance(found, list) else []


def _members(value: Any) -> Params:
    return value if isinstance(value, dict) else {}


_ANSWERERS: dict[str, Callable[[Link, Question], Job | None]] = {
    "messageHook/onMessage": _on_message,
    "inputTransformer/transform": _transform,
    "compact/execute": _compact,
    "provider/stream": _stream,
    "interceptor/before": _before,
    "interceptor/after": _after,
    "interceptor/event": _event,
    "event/dispatch": _dispatch,
}


# Being told


def told(link: Link, method: str, params: Params) -> Job | None:
    """What the host says by method without waiting for an answer."""
    if method == "$/cancelRequest":
        answer = link.cancellable.get(params.get("id"))
        if answer is not None:
            answer.cancelled = True
        call = link.calls.get(params.get("id"))
        return None if call is None else link.lane("cancel", call.cancel)
    if method == "eventBus/event":
        handler = link.topics.get(params.get("subscriptionId"))  # type: ignore[arg-type]  # it is in the table or not
        return None if handler is None else link.lane("bus", lambda: link.attempt(handler, params.get("data")))
    return None


# frames


_TOOL_OPTIONS = (
    "deferred",
    "exposure",
    "interactive",
    "namespace",
    "namespace_description",
    "namespace_instructions",
    "output_schema",
)


class Frames(Link):
    dialect = "frames"

    def __init__(self, ext: Extension, pipes: Pipes) -> None:
        super().__init__(ext, pipes)
        self._said_ready = False
        self._receivers: dict[Any, Callable[[Frame], Job | None]] = {
            "tool_call": self._tool_call,
            "hello_ack": self._hello_ack,
            "tool_cancel": self._tool_cancel,
            "command_invoked": self._command_invoked,
            "shortcut_invoked": self._shortcut_invoked,
            "event_intercept": self._event_intercept,
            "event": self._event,
            "panel_key": self._panel_key,
            "panel_resize": self._panel_resize,
            "panel_close": lambda frame: self.panel_closed(frame.get("panel_id")),
            "tool_result": self._tool_result,
            "host_response": self._host_response,
            "ext_request": self._ext_request,
            "ext_notify": self._ext_notify,
            "shutdown": self._shutdown,
        }

    def receive(self, message: Frame) -> Job | None:
        receiver = self._receivers.get(message.get("type"))
        return receiver(message) if receiver is not None else None

    # The handshake

    def open(self) -> None:
        """Everything that any host understands in one go; the rest waits until the host has said what it can do."""
        registered = self.registered
        frames: list[Frame] = [
            {
                "type": "hello",
                "name": self.ext.name,
                "version": self.ext.version,
                "capabilities": ["commands", "tools", "events", "panels", "tool_cancel", "call_tool"],
            }
        ]
        frames += [tool_frame(tool) for tool in registered.tools.values()]
        frames += [command_frame(command) for command in registered.commands.values()]
        events = [event for event in registered.events if not is_raw(event)]
        plain = list(dict.fromkeys(one.event for one in registered.interceptors if one.plain))
        if events or plain:
            frames.append(subscribe_frame(events, plain))
        if not self._kept() and not registered.required:
            self._said_ready = True
            frames.append({"type": "ready"})
        self.pipes.write(b"".join([encoded(frame) for frame in frames]))

    def _kept(self) -> bool:
        """Whether there is something that only some hosts understand."""
        kept = self.registered
        return bool(
            kept.shortcuts
            or kept.sections
            or kept.message_hooks
            or kept.input_transformers
            or kept.compactors
            or kept.providers
            or any(is_raw(event) for event in kept.events)
            or not all(one.plain for one in kept.interceptors)
        )

    def _hello_ack(self, frame: Frame) -> Job | None:
        if self.host is not None:
            return None
        hilt = frame.get("host") == "hilt"
        version = frame.get("host_version" if hilt else "zot_version") or ""
        capabilities = [one for one in frame.get("capabilities") or () if isinstance(one, str)]
        self.ext._learn(frame)
        model = frame.get("provider") or "", frame.get("model") or ""
        self.meet(HostInfo("hilt" if hilt else "zot", version, "frames", capabilities, *model))
        self.tell_missing()
        if self.exit_code:
            self.close()
            return None
        if self._kept():
            self._register_kept()
        if not self._said_ready:
            self._said_ready = True
            self.send({"type": "ready"})
        return self.started()

    def _register_kept(self) -> None:
        if not self.offers("prompt_sections"):  # nor any other `register`
            self._do_without_priorities()
            return
        for kind, fields in kinds(self.registered, self.ext.name, plain_too=False):
            try:
                self.send({"type": "register", "kind": kind, **fields})
            except ValueError as error:
                self.unregistered(kind, error)

    def _do_without_priorities(self) -> None:
        """A guard guards in any order: where there are no priorities it is asked all the same."""
        late = list(
            dict.fromkeys(
                one.event for one in self.registered.interceptors if not one.plain and one.event != "tool_result"
            )
        )
        if late:
            self.send(subscribe_frame([], late))

    def register(self, kind: str, entry: Any) -> None:
        if kind == "tool":
            self.send(tool_frame(entry))
        elif kind == "command":
            self.send(command_frame(entry))
        elif kind == "event" and not is_raw(entry):
            self.send(subscribe_frame([entry], []))
        elif kind == "interceptor" and entry.plain:
            self.send(subscribe_frame([], [entry.event]))
        else:
            name, fields = kind_of(self.registered, self.ext.name, kind, entry)
            self.send({"type": "register", "kind": name, **fields})

    def _shutdown(self, _: Frame) -> None:
        self.send({"type": "shutdown_ack"})
        self.close()

    # Tools

    def _tool_call(self, frame: Frame) -> Job | None:
        key, name = frame.get("id"), frame.get("name")
        tool = self.registered.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            self.send_result(key, Result(f"unknown tool: {name}", is_error=True))
            return None
        args = frame.get("args")
        return self.tool_job(key, str(key), tool, {} if args is None else args)

    def send_result(self, key: Any, result: Result) -> None:
        frame: Frame = {"type": "tool_result", "id": key, "content": result.content}
        if result.failed:
            frame["is_error"] = True
        if result.code or result.hint:
            frame["content"] = _worded_result(result)
        if result.structured is not None:
            frame["structured_content"] = result.structured
        if result.activate:
            frame["activate_tools"] = result.activate
        self.pipes.write(encoded(frame))

    def _tool_cancel(self, frame: Frame) -> Job | None:
        call = self.calls.get(frame.get("id"))
        return None if call is None else self.lane("cancel", call.cancel)

    def progress(self, call_id: str, text: str) -> None:
        if self.offers("progress"):
            self.send({"type": "tool_progress", "id": call_id, "text": text})

    def call_tool(self, name: str, args: dict[str, Any], parent: str, timeout: float | None) -> Result:
        self.need("call_tool")

        def send(number: int) -> None:
            frame: Frame = {"type": "call_tool", "id": str(number), "name": name, "args": args}
            if parent:
                frame["parent_id"] = parent
            self.send(frame)

        told = self.ask(send, lambda number: self.send({"type": "call_tool_cancel", "id": str(number)}), timeout)
        result = Result(content=told.get("content") or (), is_error=bool(told.get("is_error")))
        result.truncated = bool(told.get("truncated"))
        return result

    def _tool_result(self, frame: Frame) -> None:
        self.answered(_own_number(frame.get("id")), frame)

    # Commands and shortcuts

    def _command_invoked(self, frame: Frame) -> Job | None:
        name = frame.get("name")
        command = self.registered.commands.get(name) if isinstance(name, str) else None
        if command is None:
            self._no_such(frame, f"unknown command: {name}")
            return None
        return self._command_job(frame.get("id"), command, (frame.get("args") or "",))

    def _shortcut_invoked(self, frame: Frame) -> Job | None:
        name = frame.get("key")
        shortcut = self.registered.shortcuts.get(name) if isinstance(name, str) else None
        if shortcut is None:
            self._no_such(frame, f"unknown shortcut: {name}")
            return None
        return self._command_job(frame.get("id"), shortcut, ())

    def _no_such(self, frame: Frame, text: str) -> None:
        self.send({"type": "command_response", "id": frame.get("id"), "error": text})

    def _command_job(self, key: Any, handler: Command | Shortcut, args: tuple[Any, ...]) -> Job:
        def answer(value: Any) -> None:
            self.send({"type": "command_response", "id": key, **self._action(value)})

        def failed(error: BaseException) -> None:
            self.send({"type": "command_response", "id": key, "error": explained(error)})

        return Job(lambda: self.invoke(handler.function, args, answer, failed), handler)

    def _action(self, value: Any) -> Frame:
        """What a command or a shortcut returned, as an action."""
        if value is None:
            return {"action": "noop"}
        if isinstance(value, str):
            return {"action": "display", "display": value}
        if isinstance(value, Insert):
            return {"action": "insert", "insert": value.text}
        if isinstance(value, Prompt):
            return {"action": "prompt", "prompt": value.text}
        if isinstance(value, ToolPrompt):
            self.need("tool_prompt")
            return {"action": "tool_prompt", "prompt": value.prompt, "tool_name": value.tool, "tool_args": value.args}
        if hasattr(value, "on_key"):
            return {"action": "open_panel", "open_panel": self.bind_panel(value)}
        raise TypeError(f"a command cannot return {type(value).__name__}: return str, Insert, Prompt, Panel or None")

    # Interception and events

    def _event_intercept(self, frame: Frame) -> Job | None:
        event = frame.get("event") or ""
        key = frame.get("id")
        by_name = self.offers("priorities")  # then those that are not plain are asked by method
        interceptors = [one for one in self.registered.intercepts(event) if one.plain or not by_name]
        if not interceptors:
            self.send({"type": "event_intercept_response", "id": key})
            return None

        def work() -> None:
            self._decide(key, interceptors, _intercepted(event, frame))

        return Job(work, interceptors[0])

    def _decide(self, key: Any, interceptors: list[Interceptor], asked: Intercepted) -> None:
        decision = decide(self, interceptors, asked)
        reply: Frame = {"type": "event_intercept_response", "id": key}
        if decision.block is not None:
            reply["block"] = True
            if decision.block.reason:
                reply["reason"] = decision.block.reason
        elif decision.changed:
            field = _CHANGES[asked.event]
            reply[field[0]] = getattr(asked, field[1])
        try:
            self.send(reply)
        except ValueError as error:  # what was changed cannot be written
            why = f"{self.ext.name}'s guard failed: {error}"
            self.send({"type": "event_intercept_response", "id": key, "block": True, "reason": why})

    def _event(self, frame: Frame) -> Job | None:
        return self.event_job(frame.get("event") or "", frame)

    # Panels

    def bind_panel(self, panel: Panel) -> dict[str, Any]:
        content = panel.bind(self)
        self.panels[panel.id] = panel
        return {"id": panel.id, **content}

    def open_panel(self, panel: Panel) -> None:
        if self.offers("open_panel"):
            self.send({"type": "open_panel", "panel": self.bind_panel(panel)})
        else:
            self.show_panel(panel)

    def render_panel(self, panel: Panel, content: dict[str, Any]) -> None:
        self.send({"type": "panel_render", "panel_id": panel.id, **content})

    def close_panel(self, panel: Panel) -> None:
        self.forget_panel(panel.id)
        self.send({"type": "panel_close", "panel_id": panel.id})

    def _panel_key(self, frame: Frame) -> Job | None:
        key, text = frame.get("key") or "", frame.get("text") or ""
        return self.panel_job(frame.get("panel_id"), lambda panel: panel.pressed(key, text))

    def _panel_resize(self, frame: Frame) -> Job | None:
        width, height = frame.get("width") or 0, frame.get("height") or 0
        return self.panel_job(frame.get("panel_id"), lambda panel: panel.resized(width, height))

    # Telling and asking the host

    def notify(self, text: str, level: str) -> None:
        self.send({"type": "notify", "level": level, "message": text})

    def clear_notes(self) -> None:
        if self.can("clear_notes"):
            self.send({"type": "clear_notes"})

    def show(self, text: str) -> None:
        if self.offers("show"):
            self.tell("showMessage", {"text": text})
        else:
            self.notify(text, "info")

    def submit(self, text: str) -> None:
        self.need("submit")
        kind = "submit_slash" if text.lstrip().startswith("/") else "submit"
        self.send({"type": kind, "text": text})

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.send({"type": "host_notify", "method": method, "params": params})

    def request(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        self.need("bus" if method in ("host/publish", "host/subscribe") else "services")

        def send(number: int) -> None:
            self.send({"type": "host_request", "id": str(number), "method": method, "params": params})

        return self.ask(send, lambda number: self.tell("$/cancelRequest", {"id": str(number)}), timeout, hear)

    def _host_response(self, frame: Frame) -> None:
        self.answered(_own_number(frame.get("id")), frame.get("result"), frame.get("error"))

    # Asked by method

    def _ext_request(self, frame: Frame) -> Job | None:
        key = frame.get("id")

        def reply(result: Any) -> None:
            self.send({"type": "ext_response", "id": key, "result": result})

        def fail(code: int, message: str) -> None:
            self.send({"type": "ext_response", "id": key, "error": {"code": code, "message": message}})

        return asked(self, Question(key, frame.get("method") or "", frame.get("params") or {}, reply, fail))

    def _ext_notify(self, frame: Frame) -> Job | None:
        return told(self, frame.get("method") or "", frame.get("params") or {})


_CHANGES = {
    "tool_call": ("modified_args", "args"),
    "assistant_message": ("replace_text", "text"),
    "before_agent_start": ("system_prompt", "system_prompt"),
}


def tool_frame(tool: Tool) -> Frame:
    frame: Frame = {"type": "register_tool", "name": tool.name, "description": tool.description}
    frame["schema"] = tool.signature.schema
    for option in _TOOL_OPTIONS:
        if tool.options.get(option):
            frame[option] = tool.options[option]
    return frame


def command_frame(command: Command) -> Frame:
    return {"type": "register_command", "name": command.name, "description": command.description}


def subscribe_frame(events: list[str], intercept: list[str]) -> Frame:
    frame: Frame = {"type": "subscribe"}
    if events:
        frame["events"] = events
    if intercept:
        frame["intercept"] = intercept
    return frame


def _intercepted(event: str, frame: Frame) -> Intercepted:
    asked = Intercepted(event, frame)
    asked.tool = frame.get("tool_name") or ""
    asked.id = frame.get("tool_id") or ""
    asked.args = frame.get("tool_args") or {}
    asked.origin = frame.get("origin_extension") or ""
    asked.step = frame.get("step") or 0
    asked.text = frame.get("text") or ""
    asked.system_prompt = frame.get("system_prompt") or ""
    return asked


def _worded_result(result: Result) -> list[dict[str, Any]]:
    """A code and a hint as the other dialect's host would show them to the model."""
    head = f"[error:{result.code}] " if result.code else ""
    tail = f"\nhint: {result.hint}" if result.hint else ""
    others = [block for block in result.content if block.get("type") != "text"]
    return [{"type": "text", "text": head + result.text + tail}, *others]


def _own_number(key: Any) -> Any:
    """Which of our own questions it is."""
    return int(key) if isinstance(key, str) and key.isdigit() else key


# jsonrpc


_REGISTER = {
    "prompt_section": "register/promptSection",
    "interceptor": "register/interceptor",
    "event_handler": "register/eventHandler",
    "shortcut": "register/shortcut",
    "message_hook": "register/messageHook",
    "input_transformer": "register/inputTransformer",
    "compactor": "register/compactor",
    "provider": "register/provider",
}


class JsonRpc(Link):
    dialect = "jsonrpc"

    def open(self) -> None:
        """The host speaks first."""
    def receive(self, message: Message) -> Job | None:
        method, key = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if key is not None:
                self.answered(key, message.get("result"), message.get("error"))
            return None
        params = message.get("params")
        if key is None:
            return self._told(method, params if isinstance(params, dict) else {})
        return self._asked(key, method, {} if params is None else params)

    def _told(self, method: str, params: Message) -> Job | None:
        if method == "shutdown":
            self.close()
            return None
        panel_id = params.get("panel_id")
        if method == "panel/key":
            key, text = params.get("key") or "", params.get("text") or ""
            return self.panel_job(panel_id, lambda panel: panel.pressed(key, text))
        if method == "panel/resize":
            width, height = params.get("width") or 0, params.get("height") or 0
            return self.panel_job(panel_id, lambda panel: panel.resized(width, height))
        if method == "panel/closed":
            return self.panel_closed(panel_id)
        return told(self, method, params)

    def _asked(self, key: Any, method: str, params: Any) -> Job | None:
        def reply(result: Any) -> None:
            self.send({"jsonrpc": "2.0", "id": key, "result": result})

        def fail(code: int, message: str) -> None:
            self.send({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}})

        question = Question(key, method, params, reply, fail)
        own = _OWN.get(method)
        if own is not None and not isinstance(params, dict):
            fail(INVALID, f"{method}: params must be an object")
            return None
        try:
            return asked(self, question) if own is None else own(self, question)
        except (TypeError, AttributeError, ValueError) as error:
            fail(INVALID, f"{method}: the params cannot be used: {error}")
            return None

    # The handshake

    def _initialize(self, question: Question) -> Job | None:
        params = question.params
        hilt = params.get("host") == "hilt"
        capabilities = [one for one in params.get("capabilities") or () if isinstance(one, str)]
        self.ext._learn({"cwd": params.get("cwd"), "data_dir": params.get("configDir"), "extension_dir": os.getcwd()})
        version = params.get("hostVersion") or ""
        host = HostInfo("hilt" if hilt else "piglet", version, "jsonrpc", capabilities)
        self.meet(host)
        if self.exit_code:
            question.fail(FAILED, self.complaint)
            self.tell_missing()
            self.close()
            return None
        for tool in self.registered.tools.values():
            self.tell("register/tool", tool_params(tool))
        for command in self.registered.commands.values():
            self.tell("register/command", command_params(command))
        for kind, fields in kinds(self.registered, self.ext.name, plain_too=True):
            try:
                self.tell(_REGISTER[kind], self._offered(kind, fields))
            except ValueError as error:
                self.unregistered(kind, error)
        question.reply({"name": self.ext.name, "version": self.ext.version})
        self.tell_missing()
        return self.started()

    def _offered(self, kind: str, fields: Message) -> Message:
        """Without what the host would not understand."""
        if kind == "interceptor" and not self.offers("intercept.turn_start"):
            return {name: value for name, value in fields.items() if name != "events"}
        if kind == "provider" and not self.offers("provider_models"):
            return {"api": fields["api"]}
        return fields

    def register(self, kind: str, entry: Any) -> None:
        if kind == "tool":
            self.tell("register/tool", tool_params(entry))
        elif kind == "command":
            self.tell("register/command", command_params(entry))
        else:
            name, fields = kind_of(self.registered, self.ext.name, kind, entry)
            self.tell(_REGISTER[name], self._offered(name, fields))

    # Tools

    def _execute(self, question: Question) -> Job | None:
        params = question.params
        tool = self.registered.tools.get(params.get("name") or "")
        if tool is None:
            question.fail(INVALID, f"unknown tool: {params.get('name')}")
            return None
        args = params.get("args")
        return self.tool_job(question.key, str(params.get("callId") or ""), tool, {} if args is None else args)

    def send_result(self, key: Any, result: Result) -> None:
        told: Message = {"content": [wire_block(block) for block in result.content]}
        if result.failed:
            told["isError"] = True
        if result.code:
            told["errorCode"] = result.code
        if result.hint:
            told["errorHint"] = result.hint
        for name in result.activate:  # before the model reads of them
            self._request_unheard("host/activateTool", {"name": name})
        self.send({"jsonrpc": "2.0", "id": key, "result": told})

    def _request_unheard(self, method: str, params: Message) -> None:
        """A request whose answer nobody waits for."""
        with self._counting:
            self._count += 1
            number = self._count
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def progress(self, call_id: str, text: str) -> None:
        if self.offers("progress"):
            self.tell("tool/progress", {"callId": call_id, "text": text})

    def call_tool(self, name: str, args: dict[str, Any], parent: str, timeout: float | None) -> Result:
        params: Message = {"name": name, "args": args}
        if parent:
            params["callId"] = parent
        try:
            told = self.request("host/executeTool", params, timeout) or {}
        except HostError as error:
            return Result(error.message, is_error=True)
        return Result(
            content=[own_block(block) for block in told.get("content") or ()],
            is_error=bool(told.get("isError")),
            code=told.get("errorCode") or "",
            hint=told.get("errorHint") or "",
        )

    # Commands and shortcuts

    def _command(self, question: Question) -> Job | None:
        params = question.params
        command = self.registered.commands.get(params.get("name") or "")
        if command is None:
            question.fail(INVALID, f"unknown command: {params.get('name')}")
            return None

        def answer(value: Any) -> None:
            self._do(value)
            question.reply({})

        def failed(error: BaseException) -> None:
            question.fail(FAILED, explained(error))

        return Job(lambda: self.invoke(command.function, (params.get("args") or "",), answer, failed), command)

    def _shortcut(self, question: Question) -> Job | None:
        params = question.params
        shortcut = self.registered.shortcuts.get(params.get("key") or "")
        if shortcut is None:
            question.fail(INVALID, f"unknown shortcut: {params.get('key')}")
            return None

        def answer(value: Any) -> None:
            self._do(value)
            question.reply({"action": None})

        def failed(error: BaseException) -> None:
            question.fail(FAILED, explained(error))

        return Job(lambda: self.invoke(shortcut.function, (), answer, failed), shortcut)

    def _do(self, value: Any) -> None:
        """What a command returned: said by notifications, as its answer has no room for it."""
        if value is None or value == "":
            return
        if isinstance(value, str):
            self.show(value)
        elif isinstance(value, Insert):
            self.tell("setInputText", {"text": value.text})
        elif isinstance(value, Prompt):
            self.submit(value.text)
        elif isinstance(value, ToolPrompt):
            result = self.call_tool(value.tool, value.args, "", None)
            head = f"{value.tool} {'failed' if result.is_error else 'returned'}:\n"
            self.submit("\n\n".join(filter(None, (value.prompt.strip(), head + result.text))))
        elif hasattr(value, "on_key"):
            self.open_panel(value)
        else:
            raise TypeError(
                f"a command cannot return {type(value).__name__}: return str, Insert, Prompt, Panel or None"
            )

    # Panels

    def open_panel(self, panel: Panel) -> None:
        if self.offers("open_panel"):
            content = panel.bind(self)
            self.panels[panel.id] = panel
            self.tell("panel/open", {"panel_id": panel.id, **content})
        else:
            self.show_panel(panel)

    def render_panel(self, panel: Panel, content: dict[str, Any]) -> None:
        self.tell("panel/render", {"panel_id": panel.id, **content})

    def close_panel(self, panel: Panel) -> None:
        self.forget_panel(panel.id)
        self.tell("panel/close", {"panel_id": panel.id})

    # Telling and asking the host

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,
        hear: Callable[[Any], object] | None = None,
    ) -> Any:
        def send(number: int) -> None:
            self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

        return self.ask(send, lambda number: self.tell("$/cancelRequest", {"id": number}), timeout, hear)

    def notify(self, text: str, level: str) -> None:
        self.tell("notify", {"message": text, "level": level})

    def clear_notes(self) -> None:
        self.can("clear_notes")

    def show(self, text: str) -> None:
        self.tell("showMessage", {"text": text})

    def submit(self, text: str) -> None:
        self.tell("sendMessage", {"content": text})


_OWN = {
    "initialize": JsonRpc._initialize,
    "tool/execute": JsonRpc._execute,
    "command/execute": JsonRpc._command,
    "shortcut/handle": JsonRpc._shortcut,
}


def tool_params(tool: Tool) -> Message:
    params: Message = {"name": tool.name, "description": tool.description, "parameters": tool.signature.schema}
    if tool.options.get("prompt_hint"):
        params["promptHint"] = tool.options["prompt_hint"]
    if tool.options.get("deferred") or tool.options.get("exposure") == "deferred":
        params["deferred"] = True
    if not tool.options.get("interruptible", True):
        params["interruptBehavior"] = "block"
    return params


def command_params(command: Command) -> Message:
    params: Message = {"name": command.name, "description": command.description}
    return {**params, "immediate": True} if command.immediate else params


# host


class ChatReply:
    """What a model said beside the conversation."""
    __slots__ = ("text", "usage")

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.text: str = told.get("text") or ""
        self.usage: Object = told.get("usage") or {}
        """Tokens: `input`, `output`."""
class AgentReply(ChatReply):
    """What an agent of its own said, and why it ended before it was done."""
    __slots__ = ("error", "turns")

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(told)
        self.turns: int = told.get("turns") or 0
        self.error: str = told.get("error") or ""


class HostServices:
    def __init__(self, ext: Extension) -> None:
        self._ext = ext

    @property
    def aio(self) -> Aio:
        """The same for coroutines."""
        return Aio(self)

    def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Any service by its name. Raises `HostError`, `NotOffered`, `NotConnected`, `TimeoutError`."""
        return self._ext._wire().request(method, dict(params or {}), timeout)

    def _ask(self, method: str, timeout: float | None, **params: Any) -> Object:
        """Members that are None are left out."""
        given = {name: value for name, value in params.items() if value is not None}
        told = self.request(f"host/{method}", given, timeout=timeout)
        return told if isinstance(told, dict) else {}

    # Tools

    def list_tools(
        self,
        filter: str = "",  # noqa: A002  # its name there
        *,
        timeout: float | None = None,
    ) -> list[Object]:
        """Those there are, with their parameters; `filter` is `all` or `background_safe`."""
        return self._ask("listTools", timeout, filter=filter or None).get("tools") or []

    def tool_defs(self, *, timeout: float | None = None) -> list[Object]:
        """Names and descriptions of all tools."""
        return self._ask("toolDefs", timeout).get("tools") or []

    def execute_tool(
        self, name: str, args: Mapping[str, Any] | None = None, *, call_id: str = "", timeout: float | None = None
    ) -> Object:
        """Run one, as the service has it; `ext.call_tool` gives a `Result`."""
        return self._ask("executeTool", timeout, name=name, args=dict(args or {}), callId=call_id or None)

    def activate_tool(self, name: str, *, timeout: float | None = None) -> None:
        self._ask("activateTool", timeout, name=name)

    def set_tool_filter(self, names: Sequence[str] | None = None, *, timeout: float | None = None) -> None:
        """The model has these tools only; None lifts it."""
        self._ask("setToolFilter", timeout, names=None if names is None else list(names))

    # Configuration and keys

    def config(self, keys: Sequence[str], *, timeout: float | None = None) -> Object:
        """The values of those that are set."""
        return self._ask("config.get", timeout, keys=list(keys)).get("values") or {}

    def read_extension(self, name: str, *, timeout: float | None = None) -> str:
        """The text `NAME.md` in the data directory of an extension."""
        return str(self._ask("config.readExtension", timeout, name=name).get("content") or "")

    def auth_key(self, provider: str, *, timeout: float | None = None) -> str:
        """Empty when there is none."""
        return str(self._ask("auth.getKey", timeout, provider=provider).get("key") or "")

    def extensions_dir(self, *, timeout: float | None = None) -> str:
        return str(self._ask("extensionsDir", timeout).get("path") or "")

    # Models at work

    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        system: str = "",
        model: str = "",
        max_tokens: int = 0,
        timeout: float | None = None,
    ) -> ChatReply:
        """One answer of a model, beside the conversation."""
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(m) for m in messages]
        told = self._ask(
            "chat", timeout, messages=said, system=system or None, model=model or None, maxTokens=max_tokens or None
        )
        return ChatReply(told)

    def agent_run(
        self,
        task: str,
        *,
        system: str = "",
        tools: str = "",
        model: str = "",
        max_turns: int = 0,
        timeout: float | None = None,
    ) -> AgentReply:
        """An agent of its own that does a task."""
        told = self._ask(
            "agent.run",
            timeout,
            task=task,
            system=system or None,
            tools=tools or None,
            model=model or None,
            maxTurns=max_turns or None,
        )
        return AgentReply(told)

    def run_background(self, prompt: str, *, timeout: float | None = None) -> None:
        self._ask("runBackground", timeout, prompt=prompt)

    def cancel_background(self, *, timeout: float | None = None) -> None:
        self._ask("cancelBackground", timeout)

    def is_background_running(self, *, timeout: float | None = None) -> bool:
        return bool(self._ask("isBackgroundRunning", timeout).get("running"))

    # The conversation

    def conversation_messages(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("conversationMessages", timeout).get("messages") or []

    def set_conversation_messages(
        self, messages: Sequence[Mapping[str, Any]] | None, *, timeout: float | None = None
    ) -> None:
        """Go on with these in place of all that was said; None clears."""
        self._ask("setConversationMessages", timeout, messages=None if messages is None else list(messages))

    def llm_snapshot(self, *, timeout: float | None = None) -> Object:
        """What the model would be sent now: `system`, `messages`, `tools`."""
        return self._ask("llmSnapshot", timeout)

    def last_assistant_text(self, *, timeout: float | None = None) -> str:
        return str(self._ask("lastAssistantText", timeout).get("text") or "")

    def wait_for_idle(self, *, timeout: float | None = None) -> None:
        """Until nothing runs and nothing waits."""
        self._ask("waitForIdle", timeout)

    def has_compactor(self, *, timeout: float | None = None) -> bool:
        return bool(self._ask("hasCompactor", timeout).get("present"))

    def trigger_compact(self, *, timeout: float | None = None) -> Object:
        """Numbers of messages, `before` and `after`."""
        return self._ask("triggerCompact", timeout)

    def toggle_step_mode(self, *, timeout: float | None = None) -> bool:
        return bool(self._ask("toggleStepMode", timeout).get("on"))

    # Sessions

    def sessions(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("sessions", timeout).get("sessions") or []

    def load_session(self, path: str, *, timeout: float | None = None) -> None:
        self._ask("loadSession", timeout, path=path)

    def fork_session(self, *, timeout: float | None = None) -> Object:
        return self._ask("forkSession", timeout)

    def session_title(self, *, timeout: float | None = None) -> str:
        return str(self._ask("sessionTitle", timeout).get("title") or "")

    def set_session_title(self, title: str, *, timeout: float | None = None) -> None:
        self._ask("setSessionTitle", timeout, title=title)

    def session_stats(self, *, timeout: float | None = None) -> Object:
        return self._ask("sessionStats", timeout)

    def append_session_entry(self, kind: str, data: Any = None, *, timeout: float | None = None) -> None:
        """A record of the extension's own, which is no part of the conversation."""
        self._ask("appendSessionEntry", timeout, kind=kind, data=data)

    def append_custom_message(self, content: str, role: str = "user", *, timeout: float | None = None) -> None:
        self._ask("appendCustomMessage", timeout, role=role, content=content)

    def set_label(self, target_id: str, label: str = "", *, timeout: float | None = None) -> None:
        self._ask("setLabel", timeout, targetId=target_id, label=label or None)

    def branch_session(self, entry_id: str, *, timeout: float | None = None) -> None:
        self._ask("branchSession", timeout, entryId=entry_id)

    def branch_session_with_summary(self, entry_id: str, summary: str = "", *, timeout: float | None = None) -> None:
        self._ask("branchSessionWithSummary", timeout, entryId=entry_id, summary=summary or None)

    def reset_session_leaf(self, *, timeout: float | None = None) -> None:
        self._ask("resetSessionLeaf", timeout)

    def session_entry_infos(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("sessionEntryInfos", timeout).get("entries") or []

    def session_full_tree(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("sessionFullTree", timeout).get("nodes") or []

    # The catalogue of models

    def available_models(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("availableModels", timeout).get("models") or []

    def switch_model(self, model_id: str, *, persist: bool = False, timeout: float | None = None) -> None:
        self._ask("switchModel", timeout, modelId=model_id or None, persistDefault=persist or None)

    def sync_models(self, *, timeout: float | None = None) -> int:
        return int(self._ask("syncModels", timeout).get("updated") or 0)

    def write_models(self, overrides: Mapping[str, Any], *, timeout: float | None = None) -> int:
        return int(self._ask("writeModels", timeout, overrides=dict(overrides)).get("modelsWritten") or 0)

    # Asking the user

    def pick(self, title: str, items: Sequence[str | Mapping[str, Any]], *, timeout: float | None = None) -> str | None:
        """Have the user pick one: its id, or None when it was dismissed. A text is its own id."""
        listed = [{"id": item, "label": item} if isinstance(item, str) else dict(item) for item in items]
        told = self._ask("showPicker", timeout, title=title, items=listed)
        return None if told.get("cancelled") or not told.get("selected") else str(told["selected"])

    def ask(self, prompt: str, choices: Sequence[str], *, timeout: float | None = None) -> str | None:
        """Ask the user: the choice, or None when it was dismissed."""
        told = self._ask("askUser", timeout, prompt=prompt, choices=list(choices))
        return None if told.get("cancelled") or not told.get("selected") else str(told["selected"])

    def request_quit(self, *, timeout: float | None = None) -> None:
        self._ask("requestQuit", timeout)

    def abort(self, *, timeout: float | None = None) -> None:
        """Stop what runs, and wait until it has stopped."""
        self._ask("abort", timeout)

    # What is registered

    def commands(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("commands", timeout).get("commands") or []

    def shortcuts(self, *, timeout: float | None = None) -> Object:
        return self._ask("shortcuts", timeout).get("shortcuts") or {}

    def prompt_sections(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("promptSections", timeout).get("sections") or []

    def ext_infos(self, *, timeout: float | None = None) -> list[Object]:
        return self._ask("extInfos", timeout).get("extensions") or []

    # Undo

    def undo_snapshots(self, *, timeout: float | None = None) -> Object:
        return self._ask("undoSnapshots", timeout).get("snapshots") or {}

    def undo_restore(self, path: str, *, timeout: float | None = None) -> None:
        self._ask("undoRestore", timeout, path=path)

    # Messages among extensions

    def publish(self, topic: str, data: Any = None, *, timeout: float | None = None) -> None:
        self._ask("publish", timeout, topic=topic, data=data)

    def subscribe(self, topic: str, handler: Callable[[Any], object], *, timeout: float | None = None) -> int:
        """Have the handler called with all that is published from now on. A number for `unsubscribe`."""
        link = self._ext._wire()

        def hear(told: Any) -> None:
            """Before the next line is read, which may be the first of these."""
            if isinstance(told, dict):
                link.topics[told.get("subscriptionId") or 0] = handler

        told = link.request("host/subscribe", {"topic": topic}, timeout, hear)
        return int((told or {}).get("subscriptionId") or 0)

    def unsubscribe(self, subscription: int, *, timeout: float | None = None) -> None:
        """Where the host cannot end it, what comes is dropped."""
        link = self._ext._wire()
        link.topics.pop(subscription, None)
        if link.can("unsubscribe"):
            self._ask("unsubscribe", timeout, subscriptionId=subscription)


class Settings:
    """The extension's own settings, each read from the host when it is asked for."""
    def __init__(self, services: HostServices) -> None:
        self._services = services

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default when it is not set or the host has no settings."""
        try:
            values = self._services.config([key])
        except (HostError, NotOffered):
            return default
        return values.get(key, default)

    def __getitem__(self, key: str) -> Any:
        value = self.get(key, _UNSET)
        if value is _UNSET:
            raise KeyError(key)
        return value

    def __contains__(self, key: str) -> bool:
        return self.get(key, _UNSET) is not _UNSET


_UNSET: Any = object()


class Aio:
    """Methods of something that waits, for coroutines: each returns something to be awaited."""
    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._target, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            import asyncio

            return await asyncio.get_running_loop().run_in_executor(None, lambda: method(*args, **kwargs))

        return call


# speaker


_LEVELS = ("info", "success", "warn", "error")


class Speaker:
    def __init__(self, name: str) -> None:
        self.name = name
        self._link: Link | None = None

    def notify(self, text: str, level: Level = "info") -> None:
        """A note for the user."""
        if level not in _LEVELS:
            raise ValueError(f"there is no level {level!r}; there are {', '.join(_LEVELS)}")
        self._wire().notify(text, level)

    def clear_notes(self) -> None:
        """Take all notes of the extension away, where the host can."""
        self._wire().clear_notes()

    def show(self, text: str) -> None:
        """Show a text to the user; where there is no other way, as a note."""
        self._wire().show(text)

    def submit(self, text: str) -> None:
        """Say it to the model as if the user had; with a slash at the beginning it runs a command."""
        self._wire().submit(text)

    def steer(self, text: str) -> None:
        """Say it to the model while it is at work; never taken for a command."""
        self._tell("steer", "steer", {"content": text})

    def abort(self, reason: str = "") -> None:
        """Stop the turn. A reason becomes part of the conversation."""
        if reason:
            self._tell("abort", "abortWithMarker", {"reason": reason})
        else:
            self._tell("abort", "abort", {})

    def set_input(self, text: str) -> None:
        """Put a text into the user's input."""
        self._tell("input_text", "setInputText", {"text": text})

    def widget(self, key: str, text: str, placement: str = "above-input") -> None:
        """A few lines that stay; an empty text takes them away. Where there are none, nothing happens."""
        if self._wire().can("widgets"):
            self._wire().tell("setWidget", {"key": key, "placement": placement, "content": text})

    def overlay(self, key: str, text: str, *, title: str = "", anchor: str = "", width: str = "") -> None:
        """A text above everything else."""
        given = {"title": title, "anchor": anchor, "width": width}
        params = {"key": key, "content": text, **{name: value for name, value in given.items() if value}}
        self._tell("overlays", "showOverlay", params)

    def close_overlay(self, key: str) -> None:
        self._tell("overlays", "closeOverlay", {"key": key})

    def status(self, key: str, text: str) -> None:
        """A word in the status line; an empty one takes it away. Where there is none, nothing happens."""
        if self._wire().can("status"):
            self._wire().tell("setStatus", {"key": key, "text": text})

    def log(self, text: str, level: str = "info") -> None:
        """A line of the extension's log: `debug`, `info`, `warn` or `error`."""
        if self._link is not None and self._link.dialect == "jsonrpc":
            self._link.tell("log", {"level": level, "message": text})
        else:
            log(text if level == "info" else f"{level}: {text}")

    def _tell(self, feature: str, method: str, params: dict[str, Any]) -> None:
        link = self._wire()
        link.need(feature)
        link.tell(method, params)

    def open(self, panel: Panel) -> None:
        """Open a panel, without being asked."""
        self._wire().open_panel(panel)

    def call_tool(self, name: str, args: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Result:
        """Run a tool of the host or of another extension. From within a tool use that of its `Call`."""
        return self._wire().call_tool(name, dict(args or {}), "", timeout)

    def _wire(self) -> Link:
        if self._link is None:
            raise NotConnected(f"{self.name} does not run: there is no host to talk to")
        return self._link


# extension


_MOMENT = 1.0
"""Seconds that handlers have when the host ends the extension."""


class Extension(Speaker):
    def __init__(self, name: str, version: str = "0.1.0") -> None:
        super().__init__(other_name(name, "name for an extension"))
        self.version = version
        self.missing: list[str] = []
        """What the present host does not offer of what the extension uses, in words."""
        self.cwd = ""
        """Where the agent works."""
        self.extension_dir = ""
        """Where the extension's own files are."""
        self._data_dir = ""
        self._registered = Registrations()
        self._host: HostServices | None = None
        self._exits = False
        """The process shall end once all is done."""
        self._stopped = False

    # Tools

    if TYPE_CHECKING:
        @overload
        def tool(self, function: F) -> F: ...
        @overload
        def tool(
            self,
            *,
            name: str = "",
            description: str = "",
            schema: Mapping[str, Any] | None = None,
            deferred: bool = False,
            exposure: str = "",
            interactive: bool = False,
            namespace: str = "",
            namespace_description: str = "",
            namespace_instructions: str = "",
            output_schema: Mapping[str, Any] | None = None,
            prompt_hint: str = "",
            interruptible: bool = True,
        ) -> Callable[[F], F]: ...

    def tool(
        self, function: Any = None, *, name: str = "", description: str = "", schema: Any = None, **options: Any
    ) -> Any:
        """A tool for the model: a function whose signature and docstring say what it takes."""
        unknown = set(options) - _OPTIONS
        if unknown:
            raise RegistrationError(
                f"a tool has no option {sorted(unknown)[0]}; there are {', '.join(sorted(_OPTIONS))}"
            )

        def register(function: F) -> F:
            told, parameters = described(function.__doc__)
            if schema is None:
                signature = signature_of(function, Call, parameters)
            else:
                signature = free_signature(function, Call, dict(schema))
            tool = Tool(tool_name(name or function.__name__), description or told, signature, function, options)
            self._registered.tools[tool.name] = tool
            self._announce("tool", tool)
            return function

        return register if function is None else register(function)

    # Commands and shortcuts

    def command(self, name: str, description: str = "", *, immediate: bool = False) -> Callable[[F], F]:
        """A slash command: a function of what stands behind it.

        It returns a text that is shown, None, `Insert`, `Prompt`, `ToolPrompt` or a `Panel`. `immediate`: it runs
        beside a turn, where the host makes a difference.
        """
        plain = command_name(name)

        def register(function: F) -> F:
            told = description or described(function.__doc__)[0]
            command = Command(plain, told, function, immediate=immediate)
            self._registered.commands[plain] = command
            self._announce("command", command)
            return function

        return register

    def shortcut(self, key: str, description: str = "") -> Callable[[F], F]:
        """A key, such as `ctrl+g`: a function without parameters that returns what a command does."""
        other_name(key, "key", 64)

        def register(function: F) -> F:
            shortcut = Shortcut(key, description or described(function.__doc__)[0], function)
            self._registered.shortcuts[key] = shortcut
            self._announce("shortcut", shortcut)
            return function

        return register

    # What happens, and what may not

    def on(self, *events: str, name: str = "", priority: int = 0) -> Callable[[F], F]:
        """Be told of events, one after the other. Those that begin with `Event` are the jsonrpc dialect's own."""
        if not events:
            raise RegistrationError('name the event: @ext.on("turn_end")')
        for event in events:
            event_name(event)

        def register(function: F) -> F:
            for event in events:
                known = self._registered.events.setdefault(event, [])
                known.append(Listener(function, name, priority))
                if len(known) == 1:
                    self._announce("event", event)
            return function

        return register

    def intercept(
        self, event: str, *, priority: int | None = None, name: str = "", required: bool = False
    ) -> Callable[[F], F]:
        """Be asked before something happens; None lets it be. One that raises an exception refuses.

        `required`: without it the extension does not start. With a `priority` or a `name` of its own it is an
        interceptor of its own for the host; higher priorities come first.
        """
        if event not in INTERCEPTABLE:
            raise RegistrationError(f"{event!r} cannot be intercepted; there are {', '.join(INTERCEPTABLE)}")

        def register(function: F) -> F:
            interceptor = Interceptor(event, function, priority, name)
            self._registered.interceptors.append(interceptor)
            if required:
                self.require(f"intercept.{event}")
            self._announce("interceptor", interceptor)
            return function

        return register

    def prompt_section(self, title: str, content: str, order: int = 0, *, token_hint: int = 0) -> None:
        """A part of the system prompt. The same title again replaces it."""
        section = Section(other_name(title, "title"), content, order, token_hint)
        self._registered.sections[title] = section
        self._announce("prompt_section", section)

    def message_hook(self, priority: int = 0, *, name: str = "") -> Callable[[F], F]:
        """A function of what the user says, which returns what the model shall be told with it, or None."""
        return self._hook("message_hook", self._registered.message_hooks, name, priority)

    def input_transformer(self, priority: int = 0, *, name: str = "") -> Callable[[F], F]:
        """A function of what the user typed, which returns what shall be sent, None for the same, or `Handled()`."""
        return self._hook("input_transformer", self._registered.input_transformers, name, priority)

    def _hook(self, kind: str, known: list[Hook], name: str, number: int) -> Callable[[F], F]:
        def register(function: F) -> F:
            hook = Hook(other_name(name or self.name, "name"), function, number)
            known.append(hook)
            self._announce(kind, hook)
            return function

        return register

    def compactor(self, threshold: int = 0, *, name: str = "") -> Callable[[F], F]:
        """A function of the messages of the conversation, which returns fewer."""
        def register(function: F) -> F:
            hook = Hook(other_name(name or self.name, "name"), function, threshold)
            self._registered.compactors[hook.name] = hook
            self._announce("compactor", hook)
            return function

        return register

    def provider(self, api: str, models: Sequence[Model] = ()) -> Callable[[F], F]:
        """Answer for the models of an API: a function of a `Request` and a `Reply`."""
        other_name(api, "name for an API")

        def register(function: F) -> F:
            entry = ProviderEntry(api, list(models), function)
            self._registered.providers[api] = entry
            self._announce("provider", entry)
            return function

        return register

    def on_ready(self, function: F) -> F:
        """Have it called once the host is known and all is registered."""
        self._registered.on_ready.append(Handler(function))
        return function

    def on_stop(self, function: F) -> F:
        """Have it called when the extension ends; it has a second."""
        self._registered.on_stop.append(Handler(function))
        return function

    def _announce(self, kind: str, entry: Any) -> None:
        """Tell the host of it, if there is one already."""
        link = self._link
        if link is not None and link.host is not None:
            link.need("late_registration")
            link.register(kind, entry)

    # The host

    @property
    def host_info(self) -> HostInfo:
        """Raises `NotConnected` before the host has said who it is."""
        if self._link is None or self._link.host is None:
            raise NotConnected("there is no host yet: wait for on_ready")
        return self._link.host

    @property
    def host(self) -> HostServices:
        """What the host can be asked for: `ext.host.chat(…)`, sessions, the bus, the user."""
        if self._host is None:
            self._host = HostServices(self)
        return self._host

    @property
    def data_dir(self) -> str:
        """Where the extension may keep data; it exists."""
        if self._data_dir:
            os.makedirs(self._data_dir, exist_ok=True)
        return self._data_dir

    @property
    def settings(self) -> Settings:
        """The extension's own settings, as they are now: `ext.settings.get("units", "metric")`."""
        return Settings(self.host)

    def uses(self, *features: str) -> None:
        """Say what is used beyond what is registered, such as `progress`, so that it is told when it is missing."""
        self._registered.used.extend(known_feature(feature) for feature in features)

    def require(self, *features: str) -> None:
        """Without these the extension does not start, and says why."""
        self._registered.required.extend(known_feature(feature) for feature in features)

    def offers(self, feature: str) -> bool:
        """Whether the present host offers it; False while there is none."""
        known_feature(feature)
        return self._link is not None and self._link.offers(feature)

    def _learn(self, told: Mapping[str, Any]) -> None:
        """What the host says at the start about the surroundings, in the words of the frames dialect."""
        self.cwd = told.get("cwd") or ""
        self.extension_dir = told.get("extension_dir") or ""
        self._data_dir = told.get("data_dir") or ""

    # Running

    def run(self, dialect: str = "") -> None:
        """Talk to the host until it ends the extension, or its end of the pipe is closed."""
        spoken, by_descriptors = chosen_dialect(os.environ, dialect)
        if not by_descriptors and os.isatty(0):
            log(_BY_HAND.format(name=self.name, version=self.version, file=sys.argv[0] or "FILE"))
            sys.exit(2)
        pipes = take_descriptors() if by_descriptors else take_stdio()
        link = self._connect(spoken, pipes)
        self._catch_signals()
        over = allocate_lock()
        over.acquire()
        link.on_end = lambda: start_new_thread(self._stop, (link, over))
        link.run()
        over.acquire()
        if link.exit_code:
            sys.exit(link.exit_code)

    def _connect(self, dialect: str, pipes: Any) -> Link:
        link: Link
        if dialect == "frames":
            link = Frames(self, pipes)
        else:
            link = JsonRpc(self, pipes)
        self._link = link
        return link

    def _catch_signals(self) -> None:
        """`signal` itself would import `enum`. The host's Ctrl-C must not end its extensions."""
        import _signal  # type: ignore[import-not-found]  # it has no stub, as `signal` wraps it

        try:
            _signal.signal(_signal.SIGTERM, self._terminated)
            _signal.signal(_signal.SIGINT, lambda *_: None)
        except ValueError:
            pass  # not the main thread: whoever has that sees to it

    def _terminated(self, *_: object) -> None:
        """In the main thread, which may be about to read for ever, or to wait for threads of the author's."""
        if self._stopped:
            os._exit(0)
        self._exits = True
        start_new_thread(self._wire().close, ())

    def _stop(self, link: Link, over: LockType) -> None:
        """Let everything come to its end within a moment; what does not is left behind with the process.

        In a thread of its own: the main one may be the one that hangs.
        """
        ended = link.finish(_MOMENT)
        if not ended:
            log(f"{self.name}: something was still at work after {_MOMENT:g} s")
        if self._exits or not ended:
            _flush()
            os._exit(link.exit_code)
        self._stopped = True
        over.release()


_OPTIONS = frozenset(
    (
        "deferred",
        "exposure",
        "interactive",
        "interruptible",
        "namespace",
        "namespace_description",
        "namespace_instructions",
        "output_schema",
        "prompt_hint",
    )
)
_BY_HAND = """\
{name} {version} is an extension: a program that a coding agent starts and talks to. To try it:
  hilt --ext {file}             start the agent with it
  hilt ext call {file} TOOL '{{}}'   call one of its tools"""
def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # nobody reads it


# stage


PATIENCE = 5.0
"""Seconds after which a wait fails."""
CAPABILITIES = {
    "frames": (
        "call_tool",
        "host_request",
        "host_notify",
        "ext_request",
        "register",
        "tool_progress",
        "tool_cancel",
    ),
    "jsonrpc": (
        "panel/open",
        "panel/render",
        "panel/close",
        "tool/progress",
        "interceptor/event",
        "interceptor/content",
        "register/late",
        "register/models",
        "host/unsubscribe",
        "setStatus",
    ),
}
_VERSION = "0.1.0"


class HostTimeout(AssertionError):
    """The extension did not do what was waited for."""
class Called(Result):
    """What a tool answered, and what it reported on the way."""
    __slots__ = ("progress",)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.progress: list[str] = []


class Action:
    """What a command or a shortcut had done."""
    def __init__(self) -> None:
        self.shown = ""
        self.inserted = ""
        self.prompt = ""
        self.tool = ""
        """That of a prompt with a tool's result, with its `args`."""
        self.args: Message = {}
        self.panel: ShownPanel | None = None
        self.error = ""
        """Why it failed."""
class Verdict:
    """What interceptors decided."""
    def __init__(self) -> None:
        self.blocked = False
        self.reason = ""
        self.args: Message | None = None
        """What the tool is called with."""
        self.text: str | None = None
        """What is shown, or the text of the result."""
        self.system_prompt: str | None = None
        self.result: Result | None = None


class Answer:
    """What a provider answered."""
    def __init__(self, message: Message) -> None:
        self.message = message
        """The whole, as the host gets it."""
        parts = [part for part in message.get("content") or () if isinstance(part, dict)]
        self.text = "".join(part["text"] for part in parts if "text" in part)
        self.thinking = "".join(part["thinking"] for part in parts if "thinking" in part)
        self.calls = [(part["name"], part["arguments"]) for part in parts if "arguments" in part]
        """Each tool that it calls, with the arguments."""
class Note:
    def __init__(self, text: str, level: str) -> None:
        self.text = text
        self.level = level

    def __repr__(self) -> str:
        return f"Note({self.text!r}, {self.level!r})"


class ShownPanel:
    """A panel as the user sees it."""
    def __init__(self, panel_id: str) -> None:
        self.id = panel_id
        self.title = ""
        self.lines: list[str] = []
        self.footer = ""
        self.open = True

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Stage:
    """The host's side of the wire: greets, hears, serves, for as long as the block."""
    def __init__(
        self,
        ext: Extension,
        *,
        dialect: str = "",
        host: str = "hilt",
        capabilities: Sequence[str] | None = None,
        cwd: str = "",
        data_dir: str = "",
        patience: float = PATIENCE,
    ) -> None:
        self.ext = ext
        self.name = host
        self.dialect = dialect or ("jsonrpc" if host == "piglet" else "frames")
        self.capabilities = (
            tuple(CAPABILITIES[self.dialect] if host == "hilt" else ()) if capabilities is None else capabilities
        )
        self.cwd = cwd or os.getcwd()
        self.data_dir = data_dir
        self.answers: dict[str, Any] = {}
        """What the host replies by method: a value, an exception, or a function of the params."""
        self.notes: list[Note] = []
        self.panels: dict[str, ShownPanel] = {}
        self.said: list[Message] = []
        """Every message of the extension, in order."""
        self.log: list[str] = []
        """What it wrote to its log."""
        self.submitted: list[str] = []
        self.shown: list[str] = []
        self.told: list[tuple[str, Message]] = []
        """Other notifications by method, such as `setWidget`."""
        self.registered: dict[str, list[Message]] = {}
        """What was registered, by kind."""
        self._patience = patience
        self._count = 0
        self._lock = allocate_lock()
        self._news: list[Any] = []
        self._answered: dict[Any, Message] = {}
        self._progress: dict[Any, list[str]] = {}
        self._ended = False
        self._ready = False
        self.exit_code: int | None = None
        """0, or 1 when it refused to start; None while it runs."""
    # The life of it

    def __enter__(self: Self) -> Self:
        log_listeners.append(self.log.append)
        to_ext, from_host = os.pipe()
        to_host, from_ext = os.pipe()
        self._pipes = Pipes(to_host, from_host)
        self._link = self.ext._connect(self.dialect, Pipes(to_ext, from_ext))
        self._link.on_end = lambda: start_new_thread(self._end_extension, ())
        start_new_thread(self._link.run, ())
        start_new_thread(self._listen, ())
        try:
            self._greet()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it as a host does, and wait until it has ended."""
        if self._ended and self.exit_code is not None:
            self._close()
            return
        self._send({"type": "shutdown"} if self.dialect == "frames" else {"jsonrpc": "2.0", "method": "shutdown"})
        try:
            self._until(lambda: self.exit_code is not None, "it did not end")
        finally:
            self._close()

    def _end_extension(self) -> None:
        """As `run` does at the end of a process."""
        link = self._link
        if not link.finish(1.0):
            log(f"{self.ext.name}: something was still at work after 1 s")
        link.pipes.close()
        self.exit_code = link.exit_code
        self._wake()

    def _close(self) -> None:
        if self.log.append in log_listeners:
            log_listeners.remove(self.log.append)
        if self.ext._link is self._link:
            self.ext._link = None

    def _greet(self) -> None:
        if self.dialect == "frames":
            self._greet_in_frames()
        else:
            self._greet_in_jsonrpc()
        if self._link.exit_code:
            self._until(lambda: self.exit_code is not None and self._ended, "it refused, but did not end")
        else:
            self._until_heard()

    def _greet_in_frames(self) -> None:
        self._until(lambda: any(one.get("type") == "hello" for one in self.said), "it did not say hello")
        ack: Message = {"type": "hello_ack", "protocol_version": 1, "zot_version": "0.1.62"}
        ack |= {"provider": "demo", "model": "demo", "cwd": self.cwd, "extension_dir": os.getcwd()}
        ack["data_dir"] = self.data_dir
        if self.capabilities:
            ack["capabilities"] = list(self.capabilities)
        if self.name == "hilt":
            ack |= {"host": "hilt", "host_version": _VERSION}
        self._send(ack)
        self._until(lambda: self._link.host is not None, "it did not hear of the host")
        self._until(lambda: self._ready or self._link.exit_code, "it was not ready")

    def _greet_in_jsonrpc(self) -> None:
        params: Message = {"protocolVersion": "5", "cwd": self.cwd, "configDir": self.data_dir}
        if self.capabilities:
            params["capabilities"] = list(self.capabilities)
        if self.name == "hilt":
            params |= {"host": "hilt", "hostVersion": _VERSION}
        key = self._key()
        self._request(key, "initialize", params)
        self._answer(key, "initialize was not answered")

    # Asking

    def _key(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def _send(self, message: Message) -> None:
        self._pipes.write(encoded(message))

    def _request(self, key: int, method: str, params: Message) -> None:
        self._send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})

    def _notify(self, method: str, params: Message) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _ask(self, method: str, params: Message) -> Message:
        """A request of the jsonrpc dialect. Raises `AssertionError` with the error it was answered with."""
        key = self._key()
        self._request(key, method, params)
        told = self._answer(key, f"{method} was not answered")
        if "error" in told:
            raise AssertionError(told["error"].get("message"))
        result = told.get("result")
        return result if isinstance(result, dict) else {}

    def _method(self, method: str, params: Message) -> Message:
        """The same in either dialect."""
        if self.dialect == "jsonrpc":
            return self._ask(method, params)
        key = str(self._key())
        self._send({"type": "ext_request", "id": key, "method": method, "params": params})
        told = self._answer(key, f"{method} was not answered")
        if told.get("error"):
            raise AssertionError(told["error"].get("message"))
        result = told.get("result")
        return result if isinstance(result, dict) else {}

    def _until_heard(self) -> None:
        """A question that nobody has an answer to is answered at once, in the order of lines."""
        key = self._key()
        if self.dialect == "frames":
            self._send({"type": "event_intercept", "id": str(key), "event": "flush"})
            self._answer(str(key), "it does not read")
        else:
            self._request(key, "flush", {})
            self._answer(key, "it does not read")

    # Hearing

    def _answer(self, key: Any, what: str) -> Message:
        self._until(lambda: key in self._answered, what)
        return self._answered.pop(key)

    def _until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + self._patience
        while not condition():
            lock = allocate_lock()
            lock.acquire()
            self._news.append(lock)
            if condition():
                return
            left = deadline - time.monotonic()
            if left <= 0 or (self._ended and self.exit_code is not None and not condition()):
                why = "it has ended" if self._ended else f"within {self._patience:g} s"
                raise HostTimeout(f"{self.ext.name}: {what} ({why})")
            lock.acquire(timeout=min(left, 0.05))

    def _wake(self) -> None:
        while self._news:
            self._news.pop().release()

    def _listen(self) -> None:
        while True:
            line = self._pipes.read()
            if line is None:
                break
            message = decoded(line)
            self._hear(message)
            self.said.append(message)
            self._wake()
        self._ended = True
        self._pipes.close()
        self._wake()

    def _hear(self, message: Message) -> None:
        if self.dialect == "frames":
            self._hear_frame(message)
        elif "method" not in message:
            self._answered[message.get("id")] = message
        else:
            self._hear_method(message["method"], message.get("params") or {}, message.get("id"))

    def _hear_frame(self, frame: Message) -> None:
        kind = frame.get("type")
        if kind in ("tool_result", "command_response", "event_intercept_response", "ext_response"):
            self._answered[frame.get("id")] = frame
        elif kind == "tool_progress":
            self._progress.setdefault(frame.get("id"), []).append(frame.get("text") or "")
        elif kind == "ready":
            self._ready = True
        elif kind in ("register_tool", "register_command"):
            self.registered.setdefault(str(kind)[9:], []).append(frame)
        elif kind == "register":
            self.registered.setdefault(frame["kind"], []).append(frame)
        elif kind == "notify":
            self.notes.append(Note(frame.get("message") or "", frame.get("level") or "info"))
        elif kind == "clear_notes":
            self.notes.clear()
        elif kind in ("submit", "submit_slash"):
            self.submitted.append(frame.get("text") or "")
        elif kind == "open_panel":
            self._open(frame["panel"], frame["panel"]["id"])
        elif kind == "panel_render":
            self._render(frame)
        elif kind == "panel_close":
            self._shut(frame)
        elif kind == "host_notify":
            self._hear_method(frame["method"], frame.get("params") or {}, None)
        elif kind == "host_request":
            self._serve(frame["method"], frame.get("params") or {}, frame.get("id"))
        elif kind == "call_tool":
            params = {"name": frame.get("name"), "args": frame.get("args") or {}}
            self._serve("host/executeTool", params, frame.get("id"))

    def _hear_method(self, method: str, params: Message, key: Any) -> None:
        if key is not None:
            self._serve(method, params, key)
        elif method.startswith("register/"):
            self.registered.setdefault(_KINDS.get(method, method[9:]), []).append(params)
        elif method == "notify":
            self.notes.append(Note(params.get("message") or "", params.get("level") or "info"))
        elif method == "tool/progress":
            self._progress.setdefault(params.get("callId"), []).append(params.get("text") or "")
        elif method == "panel/open":
            self._open(params, params["panel_id"])
        elif method == "panel/render":
            self._render(params)
        elif method == "panel/close":
            self._shut(params)
        elif method == "sendMessage":
            self.submitted.append(params.get("content") or "")
        elif method == "showMessage":
            self.shown.append(params.get("text") or "")
        elif method == "log":
            level, line = params.get("level") or "info", params.get("message") or ""
            self.log.append(line if level == "info" else f"{level}: {line}")
        else:
            self.told.append((method, params))

    def _open(self, content: Message, panel_id: str) -> ShownPanel:
        panel = self.panels.setdefault(panel_id, ShownPanel(panel_id))
        panel.open = True
        panel.title = content.get("title") or panel.title
        panel.lines, panel.footer = content.get("lines") or [], content.get("footer") or ""
        return panel

    def _render(self, content: Message) -> None:
        if content.get("panel_id") in self.panels:
            self._open(content, content["panel_id"])

    def _shut(self, content: Message) -> None:
        panel = self.panels.pop(content.get("panel_id") or "", None)
        if panel is not None:
            panel.open = False

    def _subscribed(self, member: str) -> list[str]:
        return [name for one in self.said if one.get("type") == "subscribe" for name in one.get(member) or ()]

    def _subscriptions(self) -> list[str]:
        """Topics, in the order of their numbers."""
        return [
            (one.get("params") or {}).get("topic") or "" for one in self.said if one.get("method") == "host/subscribe"
        ]

    # Serving

    def _serve(self, method: str, params: Message, key: Any) -> None:
        """Answer what the extension asks for, as the test has said; in a thread, as its function may take its time."""
        start_new_thread(self._reply, (method, params, key, len(self._subscriptions()) + 1))

    def _reply(self, method: str, params: Message, key: Any, subscription: int) -> None:
        value: Any = self.answers.get(method, _NOTHING)
        if value is _NOTHING and method == "host/subscribe":
            value = {"subscriptionId": subscription}
        elif value is _NOTHING and method == "host/publish":
            value = {}
        elif callable(value) and not isinstance(value, type):
            try:
                value = value(params)
            except Exception as error:  # noqa: BLE001  # the test's own: the extension is told
                value = error
        if value is _NOTHING:
            problem: Message | None = {"code": -32601, "message": f"method not found: {method} (set host.answers)"}
        elif isinstance(value, Exception):
            problem = {"code": getattr(value, "code", -32603), "message": str(value)}
        else:
            problem = None
        self._send(self._response(method, key, {} if value is None else value, problem))

    def _response(self, method: str, key: Any, value: Any, problem: Message | None) -> Message:
        if self.dialect == "jsonrpc":
            outcome = {"result": value} if problem is None else {"error": problem}
            return {"jsonrpc": "2.0", "id": key, **outcome}
        if method == "host/executeTool" and not self._is_request(key):
            if problem is not None:
                value = {"content": [{"type": "text", "text": problem["message"]}], "is_error": True}
            elif isinstance(value, str):
                value = {"content": [{"type": "text", "text": value}]}
            return {"type": "tool_result", "id": key, **value}
        outcome = {"result": value} if problem is None else {"error": problem}
        return {"type": "host_response", "id": key, **outcome}

    def _is_request(self, key: Any) -> bool:
        return any(one.get("type") == "host_request" and one.get("id") == key for one in self.said[-50:])


_NOTHING: Any = object()
_KINDS = {
    "register/promptSection": "prompt_section",
    "register/eventHandler": "event_handler",
    "register/messageHook": "message_hook",
    "register/inputTransformer": "input_transformer",
}


# testing


__all__ = ["Action", "Answer", "Called", "Host", "HostTimeout", "Note", "ShownPanel", "Verdict"]


class Host(Stage):
    """Plays the host for as long as the block.

    `answers` says what the host replies: `host.answers["host/chat"] = {"text": "4"}`, or a function of the params.
    `notes`, `panels`, `shown`, `submitted`, `told` and `registered` have what the extension said, `said` all of it.
    """
    @property
    def missing(self) -> list[str]:
        return self.ext.missing

    def call(self, tool: str, /, _args: Mapping[str, Any] | None = None, **args: Any) -> Called:
        """Call a tool, as the model would, and wait for its answer."""
        return self.finish(self.start(tool, _args, **args))

    def start(self, tool: str, /, _args: Mapping[str, Any] | None = None, **args: Any) -> str:
        """Call a tool and go on; `finish` waits for it, `cancel` gives it up."""
        given = {**(_args or {}), **args}
        key = self._key()
        if self.dialect == "frames":
            self._send({"type": "tool_call", "id": str(key), "name": tool, "args": given})
            return str(key)
        self._request(key, "tool/execute", {"callId": f"call_{key}", "name": tool, "args": given})
        return str(key)

    def finish(self, call: str) -> Called:
        if self.dialect == "frames":
            told = self._answer(call, "the tool did not answer")
            result = Called(content=told.get("content") or (), is_error=bool(told.get("is_error")))
            result.structured = told.get("structured_content")
            result.activate = told.get("activate_tools") or []
            result.progress = self._progress.get(call, [])
            return result
        told = self._answer(int(call), "the tool did not answer")
        if "error" in told:
            return Called(text=told["error"]["message"], is_error=True)
        said = told["result"]
        result = Called(
            content=[own_block(block) for block in said.get("content") or ()], is_error=bool(said.get("isError"))
        )
        result.code, result.hint = said.get("errorCode") or "", said.get("errorHint") or ""
        result.progress = self._progress.get(f"call_{call}", [])
        return result

    def cancel(self, call: str) -> None:
        """Nobody waits for it any more."""
        if self.dialect == "frames":
            self._send({"type": "tool_cancel", "id": call})
        else:
            self._notify("$/cancelRequest", {"id": int(call)})

    def run(self, line: str) -> Action:
        """Run a slash command: `host.run("/hi Ada")`."""
        name, _, args = line.lstrip("/").partition(" ")
        if self.dialect == "frames":
            frame: Message = {"type": "command_invoked", "name": name}
            return self._acted({**frame, "args": args.strip()} if args.strip() else frame)
        return self._did("command/execute", {"name": name, "args": args.strip()})

    def press(self, key: str) -> Action:
        """Press a shortcut."""
        if self.dialect == "frames":
            return self._acted({"type": "shortcut_invoked", "key": key})
        return self._did("shortcut/handle", {"key": key})

    def intercept(self, tool: str, args: Mapping[str, Any] | None = None, *, origin: str = "") -> Verdict:
        """Ask whether a tool may be called."""
        verdict = Verdict()
        verdict.args = dict(args or {})
        for told in self._interceptors(
            "interceptor/before", toolName=tool, args=verdict.args, callId="c1", origin=origin
        ):
            verdict.args = told.get("args") or verdict.args
            if not told.get("allow"):
                verdict.blocked, verdict.reason = True, told.get("preview") or told.get("error") or ""
                return verdict
        if "tool_call" not in self._subscribed("intercept"):
            return verdict
        fields: Message = {"tool_id": "c1", "tool_name": tool, "tool_args": verdict.args}
        return self._decided("tool_call", {**fields, "origin_extension": origin} if origin else fields, verdict.args)

    def intercept_turn(self, step: int = 1) -> Verdict:
        return self._intercept_event("turn_start", {"step": step})

    def intercept_message(self, text: str) -> Verdict:
        return self._intercept_event("assistant_message", {"text": text})

    def intercept_prompt(self, system_prompt: str) -> Verdict:
        return self._intercept_event("before_agent_start", {"system_prompt": system_prompt})

    def intercept_result(self, tool: str, text: str, *, is_error: bool = False) -> Verdict:
        """Show interceptors what a tool returned."""
        content: list[Message] = [{"type": "text", "text": text}]
        verdict = Verdict()
        for params in self._interceptors(
            "interceptor/after", toolName=tool, callId="c1", content=content, isError=is_error
        ):
            changed = params.get("content")
            if changed is not None:
                content = [{"type": "text", "text": changed}] if isinstance(changed, str) else changed
                is_error = bool(params.get("isError", is_error))
        verdict.result = Result(content=[own_block(block) for block in content], is_error=is_error)
        verdict.text = verdict.result.text
        return verdict

    def emit(self, event: str, **members: Any) -> None:
        """Tell of an event, and wait until its handlers are done."""
        if event.startswith("Event"):
            self._method("event/dispatch", {"type": event, "data": members})
        elif self.dialect == "jsonrpc":
            raw = COUNTERPARTS.get(event)
            if raw is None:
                raise AssertionError(f"there is no {event} in the jsonrpc dialect")
            self._method("event/dispatch", {"type": raw, "data": _raw_event(event, members)})
        else:
            self._send({"type": "event", "event": event, **members})
            self._flush("events")

    def key(self, panel: ShownPanel | str, key: str, text: str = "") -> None:
        """Press a key in a panel, and wait until it was dealt with. One character alone is a `rune`."""
        if len(key) == 1:
            key, text = "rune", key
        members: Message = {"panel_id": _panel_id(panel), "key": key}
        self._panel("panel_key", "panel/key", {**members, "text": text} if text else members)

    def resize(self, panel: ShownPanel | str, width: int, height: int) -> None:
        members = {"panel_id": _panel_id(panel), "width": width, "height": height}
        self._panel("panel_resize", "panel/resize", members)

    def close_panel(self, panel: ShownPanel | str) -> None:
        """Close a panel as the user does."""
        members = {"panel_id": _panel_id(panel)}
        self._shut(members)
        self._panel("panel_close", "panel/closed", members)

    def hook(self, message: str) -> str:
        """What message hooks add to it."""
        return str(self._method("messageHook/onMessage", {"message": message}).get("injection") or "")

    def transform(self, text: str) -> str | None:
        """What input transformers make of it; None when they have dealt with it."""
        told = self._method("inputTransformer/transform", {"input": text})
        return None if told.get("handled") else str(told.get("output") or "")

    def compact(self, messages: Sequence[Message]) -> list[Message]:
        return self._method("compact/execute", {"messages": list(messages)}).get("messages") or []

    def stream(self, prompt: str, *, api: str = "", model: str = "", **params: Any) -> Answer:
        """Ask a provider; the first of them, and its first model, if none is named. Pieces are in `told`."""
        entries = self.registered.get("provider") or [{}]
        entry = next((one for one in entries if one.get("api") == api), entries[0])
        models = entry.get("models") or [{}]
        api, model = api or entry.get("api") or "", model or models[0].get("id") or ""
        asked = {"id": model, "name": model, "api": api, "provider": api}
        self._count += 1
        request = {"requestId": self._count, "model": asked, "system": "", "options": {}, "tools": []}
        request["messages"] = [{"role": "user", "content": prompt}]
        message = self._method("provider/stream", {**request, **params}).get("message")
        assert isinstance(message, dict), message
        return Answer(message)

    def publish(self, topic: str, data: Any = None) -> None:
        """Tell all handlers of a topic that it has subscribed to, and wait for them."""
        for number, one in enumerate(self._subscriptions(), 1):
            if one == topic:
                params = {"topic": topic, "subscriptionId": number, "data": data}
                if self.dialect == "frames":
                    self._send({"type": "ext_notify", "method": "eventBus/event", "params": params})
                else:
                    self._notify("eventBus/event", params)
        self._flush("bus")

    def wait(self, condition: Callable[[], object], what: str = "it did not happen") -> None:
        """Until the condition holds, which is looked at whenever the extension says something."""
        self._until(condition, what)

    def _interceptors(self, method: str, **params: Any) -> list[Message]:
        """The answers of each registered interceptor in order of priority; a refusal ends it."""
        answers = []
        for one in sorted(self.registered.get("interceptor", ()), key=lambda one: -(one.get("priority") or 0)):
            try:
                told = self._method(method, {"name": one["name"], **params})
            except HostTimeout:
                raise
            except AssertionError as error:
                told = {"allow": False, "error": str(error)}
            answers.append(told)
            if told.get("args"):
                params["args"] = told["args"]
            if method == "interceptor/before" and not told.get("allow"):
                break
        return answers

    def _intercept_event(self, event: str, fields: Message) -> Verdict:
        if self.dialect == "frames" and event in self._subscribed("intercept"):
            return self._decided(event, fields, None)
        verdict = Verdict()
        params = {("systemPrompt" if name == "system_prompt" else name): value for name, value in fields.items()}
        verdict.text, verdict.system_prompt = fields.get("text"), fields.get("system_prompt")
        for told in self._interceptors("interceptor/event", event=event, **params):
            if told.get("allow") is False:
                verdict.blocked, verdict.reason = True, told.get("reason") or told.get("error") or ""
                return verdict
            verdict.text = told.get("text", verdict.text)
            verdict.system_prompt = told.get("systemPrompt", verdict.system_prompt)
        return verdict

    def _decided(self, event: str, fields: Message, args: Message | None) -> Verdict:
        key = str(self._key())
        self._send({"type": "event_intercept", "id": key, "event": event, **fields})
        told = self._answer(key, f"{event} was not decided about")
        verdict = Verdict()
        verdict.blocked, verdict.reason = bool(told.get("block")), told.get("reason") or ""
        verdict.args = told.get("modified_args", args)
        verdict.text = told.get("replace_text", fields.get("text"))
        verdict.system_prompt = told.get("system_prompt", fields.get("system_prompt"))
        return verdict

    def _acted(self, frame: Message) -> Action:
        key = str(self._key())
        self._send({**frame, "id": key})
        told = self._answer(key, "the command did not answer")
        action = Action()
        action.error = told.get("error") or ""
        if action.error:
            return action
        kind = told.get("action")
        action.shown, action.inserted = told.get("display") or "", told.get("insert") or ""
        action.prompt, action.tool = told.get("prompt") or "", told.get("tool_name") or ""
        action.args = told.get("tool_args") or {}
        if kind == "open_panel":
            action.panel = self._open(told["open_panel"], told["open_panel"]["id"])
        return action

    def _did(self, method: str, params: Message) -> Action:
        """In the jsonrpc dialect a command's doings are notifications before its answer."""
        begun = len(self.said)
        action = Action()
        try:
            told = self._ask(method, params)
        except HostTimeout:
            raise
        except AssertionError as error:
            action.error = str(error)
            return action
        done = [(one["method"], one.get("params") or {}) for one in self.said[begun:] if "method" in one]
        if told.get("action"):
            done.append((told["action"].get("type"), told["action"].get("payload") or {}))
        for method_, said in done:
            if method_ == "showMessage":
                action.shown = said.get("text") or ""
            elif method_ == "setInputText":
                action.inserted = said.get("text") or ""
            elif method_ == "sendMessage":
                action.prompt = said.get("content") or ""
            elif method_ == "panel/open":
                action.panel = self.panels[said["panel_id"]]
        return action

    def _panel(self, frame: str, method: str, members: Message) -> None:
        if self.dialect == "frames":
            self._send({"type": frame, **members})
        else:
            self._notify(method, members)
        self._flush(f"panel {members['panel_id']}")

    def _flush(self, lane: str) -> None:
        """Until all that was sent has been read and dealt with in that lane, and what was said then has arrived."""
        self._until_heard()
        self._until(lambda: not self._link.is_busy(lane), "a handler did not end")
        self._until_heard()


def _panel_id(panel: ShownPanel | str) -> str:
    return panel if isinstance(panel, str) else panel.id


def _raw_event(event: str, members: Message) -> Message:
    """What the jsonrpc dialect would tell in place of these members."""
    if event == "turn_start":
        return {}
    if event == "turn_end":
        reason = {"end": "stop", "tool_use": "toolUse"}.get(members.get("stop", "end"), members.get("stop"))
        return {"Assistant": {"content": [], "stopReason": reason, "error": members.get("error")}, "ToolResults": None}
    if event == "assistant_message":
        return {"Message": {"content": [{"type": "text", "text": members.get("text", "")}], "stopReason": "stop"}}
    if event == "user_prompt_submit":
        return {"Content": members.get("text", "")}
    if event == "post_compact":
        return {"Before": 0, "After": members.get("message_count"), "TokensAtCompact": members.get("token_estimate")}
    called = {"ToolCallID": members.get("tool_id", "c1"), "ToolName": members.get("tool_name", "")}
    if event == "tool_call":
        return {**called, "Args": members.get("tool_args")}
    result = members.get("result") or {}
    return {**called, "Result": result, "IsError": bool(result.get("is_error"))}

__version__ = "0.1.0"
__all__ = [
    "Block",
    "Call",
    "Event",
    "Extension",
    "Handled",
    "HostError",
    "Image",
    "Insert",
    "Intercepted",
    "Model",
    "NotConnected",
    "NotOffered",
    "Panel",
    "Prompt",
    "RegistrationError",
    "Replace",
    "Reply",
    "Request",
    "Result",
    "Rewrite",
    "ToolError",
    "ToolPrompt",
]

# `from hilt_sdk.testing import Host` works with this file too.
sys.modules[__name__ + ".testing"] = sys.modules[__name__]
