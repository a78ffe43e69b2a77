"""A labelled stand-in for a language model: no key, no network, the same answer every time.

It shows the product: it lists and reads files, runs a command that is quoted, and calls any tool
that a message names. It plans a message anew at every call from the conversation alone, so it
holds no state. How arguments are found in words is `demo_arguments`' business.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence

from msgspec import Struct

from hilt.model.content import Args, AssistantBlock, Text, ToolCall, text_of
from hilt.model.conversation import AssistantMessage, Message, ToolMessage, ToolResult, Usage, UserMessage, tool_calls
from hilt.model.stream import Completed, ModelRequest, StreamItem, ToolSpec
from hilt.providers.demo_arguments import (
    PATH_LIKE,
    bare,
    blank_quotations,
    fill,
    mention,
    properties,
    quotations,
    quoted,
    required,
    valid,
)
from hilt.providers.replay import deltas, unused_id

NOT_A_MODEL = "I am hilt's built-in demo, not a language model: I follow a few simple rules."
_ABILITIES = (
    "I can list the files, read one (`read README.md`), run a command in backticks or double quotes "
    "(run `git status`), and call a tool when you name it. For a real model, use `hilt login`."
)
_LONGEST_MESSAGE = 8000
"""Only so much of a message is searched for requests."""
_SHOWN_LINES = 20
_SHOWN_CHARACTERS = 1200
_SHELLS = ("bash", "shell", "sh")
_OWN_VERBS = frozenset({"read", "write", "edit", "bash", "shell", "sh", "skill"})
"""Tools whose names are everyday verbs: a tool with a name of its own is meant before these."""

_THEN = re.compile(r"(?<!\w)(?:and\s+)?then(?!\w)", re.IGNORECASE)
_RUN = re.compile(r"(?<!\w)(?:run|execute|exec|bash|shell|command)(?!\w)", re.IGNORECASE)
_LIST = re.compile(
    r"(?<!\w)(?:(?:list|show|what|which|see|ls)\b[^.?!]{0,60}\b(?:files?|director(?:y|ies)|folders?)\b|ls\b|list\s*$)",
    re.IGNORECASE,
)
_WHERE = re.compile(r"\b(?:in|of|under|inside)\s+(?:the\s+)?(\S+)", re.IGNORECASE)
_HERE = frozenset({"this", "here", "current", "my", "directory", "folder", "project", "repository", "repo", "it"})
_READ = re.compile(
    r"(?<!\w)(read|cat|open|show|view|print|display|look\s+at|what(?:\s+is|'s|’s)\s+in|contents?\s+of)"
    r"(?:\s+(?:me|the|a|my|file|contents?|of))*\s+(\S+)",
    re.IGNORECASE,
)


class Step(Struct, frozen=True):
    """One request of a message: a call, or the reason why there is none."""

    tool: str = ""
    args: Args | None = None
    problem: str = ""


class Demo:
    name = "demo"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        content = answer(request)
        for delta in deltas(content):
            yield delta
            await asyncio.sleep(0)  # nothing else waits here, and what never waits cannot be cancelled
        called = any(isinstance(block, ToolCall) for block in content)
        usage = Usage(input=_size(request) // 4, output=sum(_length(block) for block in content) // 4)
        yield Completed(content, "tool_use" if called else "end", usage)

    async def aclose(self) -> None:
        """Nothing is held open."""


def answer(request: ModelRequest) -> tuple[AssistantBlock, ...]:
    """The next assistant message of this conversation."""
    start = _newest_prompt(request.messages)
    prompt = request.messages[start] if start >= 0 else None
    text = _clean(text_of(prompt.content, "\n")) if isinstance(prompt, UserMessage) else ""
    if not request.tools and _wants_summary(request.system, text):
        return (Text(_summary(text)),)
    since = request.messages[start + 1 :]
    results = [result for message in since if isinstance(message, ToolMessage) for result in message.results]
    steps = plan(text, request.tools)
    calls = [step for step in steps if step.args is not None]
    made = sum(1 for message in since if tool_calls(message))
    opening = not any(isinstance(message, AssistantMessage) for message in request.messages)
    failed = bool(results) and results[-1].is_error
    if made < len(calls) and not failed:
        call = calls[made]
        call_id = unused_id(f"demo_{made + 1}", request.messages)
        block = ToolCall(call_id, call.tool, call.args or {})
        return (Text(f"{NOT_A_MODEL}\n\nCalling `{call.tool}`."), block) if opening else (block,)
    parts = [_report(result) for result in results]
    parts += [step.problem for step in steps if step.problem]
    if failed and made < len(calls):
        parts.append("I stopped there: " + ", ".join(f"`{step.tool}`" for step in calls[made:]) + " was not called.")
    if not parts:
        parts.append(_ABILITIES)
    if not any(_spoke_before(message) for message in request.messages[: max(start, 0)]):
        parts.insert(0, NOT_A_MODEL)
    return (Text("\n\n".join(parts)),)


def plan(text: str, tools: Sequence[ToolSpec]) -> list[Step]:
    """The requests of a message in order; what is not understood is left out."""
    return [step for part in _parts(text[:_LONGEST_MESSAGE]) if (step := _step(part, tools))]


def _parts(text: str) -> list[str]:
    """Cut at `then`, but never inside a quotation."""
    parts: list[str] = []
    start = 0
    for match in _THEN.finditer(blank_quotations(text)):
        parts.append(text[start : match.start()])
        start = match.end()
    trimmed = (part.lstrip(" \t\n,;:").rstrip(" \t\n,;") for part in (*parts, text[start:]))
    return [part for part in trimmed if part]


def _step(text: str, tools: Sequence[ToolSpec]) -> Step | None:
    offered = {tool.name: tool for tool in tools}
    shell = next((offered[name] for name in _SHELLS if name in offered), None)
    named = _named_tool(text, [tool for tool in tools if tool.name not in _OWN_VERBS])
    command = _command(text, before=named[1].start() if named else len(text))
    if named and command is None:
        return _call(named[0], text, named[1])
    if command is not None:
        return _given(shell, {"command": command}, "run a command")
    if (directory := _listed(text)) is not None:
        return _given(shell, {"command": f"ls -la {directory}".strip()}, "list files")
    if (path := _read_path(text)) is not None:
        return _given(offered.get("read"), {"path": path}, "read a file")
    if verb := _named_tool(text, [tool for tool in tools if tool.name in _OWN_VERBS]):
        return _call(verb[0], text, verb[1])
    return _by_argument(text, tools)


def _named_tool(text: str, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, re.Match[str]] | None:
    """The tool a text names, and where. Of several, the longest name."""
    for match in quotations(text):
        for tool in tools:
            if quoted(match).strip().lower() == tool.name.lower():
                return tool, match
    outside = blank_quotations(text)
    found = [(tool, place) for tool in tools if tool.name and (place := mention(outside, tool.name))]
    return max(found, key=lambda pair: len(pair[0].name)) if found else None


def _command(text: str, before: int) -> str | None:
    """The quoted command of `run "make test"`; a message that is all backticks is one too."""
    verb = _RUN.search(blank_quotations(text))
    for match in quotations(text):
        alone = text.strip() == match[0] and match[0].startswith("`")
        if match[0][0] in '`"“' and match.start() < before and (alone or (verb and verb.start() < match.start())):
            return quoted(match)
    return None


def _listed(text: str) -> str | None:
    """The directory of `list the files in src`, quoted for the shell; empty for the current one."""
    if not _LIST.search(blank_quotations(text)):
        return None
    quotation = next(iter(quotations(text)), None)
    place = _WHERE.search(text)
    directory = quoted(quotation) if quotation else bare(place[1]) if place else ""
    if not directory or directory.lower() in _HERE:
        return ""
    from shlex import quote  # only needed here

    return quote(directory) if not directory.startswith("-") else quote(f"./{directory}")


def _read_path(text: str) -> str | None:
    asked = _READ.search(text)
    if not asked:
        return None
    verb, word = asked[1].lower(), bare(asked[2])
    for match in quotations(text):
        if match.start() >= asked.start():
            return quoted(match)
    if PATH_LIKE.fullmatch(word):
        return word
    later = next((bare(each) for each in text[asked.end() :].split() if PATH_LIKE.fullmatch(bare(each))), None)
    if later:
        return later
    # `read Makefile` is a file whatever its name; `show mercy` is not.
    return word if verb in ("read", "cat") and text[asked.end() :].strip(" .?!") == "" and word else None


def _by_argument(text: str, tools: Sequence[ToolSpec]) -> Step | None:
    """A tool that is not named, but one of whose required arguments is."""
    outside = blank_quotations(text)
    best: tuple[int, Step] | None = None
    for tool in tools:
        named = sum(1 for name in required(tool.schema) if _gives(outside, name, tool.name in _OWN_VERBS))
        if named and (best is None or named > best[0]):
            step = _call(tool, text, None)
            if step.args is not None:
                best = (named, step)
    return best[1] if best else None


def _gives(text: str, argument: str, strictly: bool) -> bool:
    """Whether a text names an argument; `path` and `command` are common words, so those need a `=` or `:`."""
    found = mention(text, argument)
    return found is not None and (not strictly or text[found.end() :].lstrip()[:1] in ("=", ":"))


def _call(tool: ToolSpec, text: str, name: re.Match[str] | None) -> Step:
    filling = fill(text, tool.schema, name)
    if not filling.missing and valid(filling.args, tool.schema):
        return Step(tool.name, filling.args)
    wanted = filling.missing or required(tool.schema) or list(properties(tool.schema))
    given = " ".join(f"{argument}=…" for argument in wanted)
    return Step(problem=f"To call `{tool.name}` I need its arguments spelt out: `{tool.name} {given}`.")


def _given(tool: ToolSpec | None, args: Args, what: str) -> Step:
    if tool is None:
        return Step(problem=f"I have no tool to {what} here.")
    if not valid(args, tool.schema):
        return Step(problem=f"The tool `{tool.name}` does not take what I would give it to {what}.")
    return Step(tool.name, args)


def _report(result: ToolResult) -> str:
    text = _clean(text_of(result.content, "\n")).strip("\n")
    shown = _beginning(text) if text.strip() else "(no text)"
    if result.is_error:
        return f"The call of `{result.name}` failed or was refused:\n\n{shown}"
    return f"`{result.name}` answered:\n\n{shown}"


def _beginning(text: str) -> str:
    cut = "\n".join(text[:_SHOWN_CHARACTERS].split("\n")[:_SHOWN_LINES])
    return cut if len(cut) == len(text) else f"{cut}\n… ({len(text) - len(cut)} more characters)"


def _wants_summary(system: str, text: str) -> bool:
    """Only compaction asks without any tool; a person with `--no-tools` gets an ordinary answer."""
    return len(text) > _LONGEST_MESSAGE or "summar" in f"{system}\n{text}".lower()


def _summary(text: str) -> str:
    lines = [line.strip()[:200] for line in text.split("\n") if line.strip()]
    first, last = lines[:6], lines[6:][-6:]
    kept = [*first, f"… ({len(lines) - 12} lines left out) …", *last] if len(lines) > 12 else [*first, *last]
    head = f"Summary by hilt's demo, which is not a language model: {len(lines)} lines, of which these were kept."
    return "\n".join([head, "", *(f"- {line}" for line in kept)])


def _newest_prompt(messages: Sequence[Message]) -> int:
    """The position of what the user asked last, or -1. A summary is not a question."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, UserMessage) and not message.summary:
            return position
    return -1


def _spoke_before(message: Message) -> bool:
    return isinstance(message, AssistantMessage) or (isinstance(message, UserMessage) and message.summary)


def _clean(text: str) -> str:
    """Half a surrogate pair cannot be sent to anyone."""
    return text.encode("utf-8", "replace").decode()


def _size(request: ModelRequest) -> int:
    total = len(request.system)
    for message in request.messages:
        match message:
            case ToolMessage(results=results):
                total += sum(len(text_of(result.content)) for result in results)
            case UserMessage(content=content) | AssistantMessage(content=content):
                total += len(text_of(content))
    return total


def _length(block: AssistantBlock) -> int:
    return len(str(block.args)) if isinstance(block, ToolCall) else len(block.text)
