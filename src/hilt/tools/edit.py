"""The `edit` tool: exact replacements in one file, all or none.

The rules of matching are `matching`'s. Bytes outside the replaced parts survive as they are, whether
or not they are valid UTF-8.
"""

import codecs

from msgspec import Struct

from hilt.errors import ToolError
from hilt.model.content import Args
from hilt.model.contributions import Effect, Invocation, Preview, Tool, ToolOutput
from hilt.tools.arguments import parse
from hilt.tools.background import Wanted, in_thread
from hilt.tools.diff import context_diff, split_lines
from hilt.tools.files import Target, replace, survey
from hilt.tools.lines import byte_order_mark
from hilt.tools.matching import Edit, apply, changes, find_all
from hilt.tools.paths import absolute, explained
from hilt.tools.read import MOST_BYTES, MOST_LINES
from hilt.tools.shown import keep_promise
from hilt.tools.text import clip, to_bytes
from hilt.tools.workspace import Workspace

_MOST_EDITED_BYTES = 32 * 1024 * 1024

_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File to edit: absolute, relative to the working directory, or ~/…"},
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "Replacements, all matched against the file as it is now; they must not overlap",
            "items": {
                "type": "object",
                "properties": {
                    "oldText": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Exact text to replace, white space included; must occur exactly once",
                    },
                    "newText": {"type": "string", "description": "What to put there; empty to delete"},
                },
                "required": ["oldText", "newText"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}


class _EditArgs(Struct, frozen=True):
    path: str
    edits: tuple[Edit, ...]


class _Plan(Struct, frozen=True):
    target: Target
    data: bytes
    diff: str

    @property
    def preview(self) -> Preview:
        return Preview("diff", self.diff)


def edit_tool(workspace: Workspace) -> Tool:
    async def invoke(invocation: Invocation) -> ToolOutput:
        args = parse(invocation.args, _EditArgs)
        plan = await in_thread(lambda _: _plan(workspace, args))
        keep_promise(invocation, plan.preview, plan.target)
        workspace.remember(invocation.call_id, plan.target.real)
        await in_thread(lambda wanted: _carry_out(plan, wanted))
        diff = clip(plan.diff, MOST_LINES, MOST_BYTES)
        return ToolOutput.of(diff, path=str(plan.target.path), diff=diff, edits=len(args.edits))

    async def preview(raw: Args) -> Preview:
        args = parse(raw, _EditArgs)
        return (await in_thread(lambda _: _plan(workspace, args))).preview

    return Tool(
        "edit",
        "Replace exact pieces of text in a file. Every oldText must occur exactly once; all edits are made or none. "
        "Answers with a diff of what changed.",
        _SCHEMA,
        invoke,
        effect=Effect.WRITE,
        preview=preview,
    )


def _plan(workspace: Workspace, args: _EditArgs) -> _Plan:
    path = absolute(args.path, workspace.cwd)
    with explained(path):
        target = survey(workspace, args.path, _MOST_EDITED_BYTES)
        if target.before is None:
            raise FileNotFoundError(2, "no such file")
    mark, text = _decode(target)
    edits = [Edit(_clean(edit.old_text), _clean(edit.new_text)) for edit in args.edits]
    replacements = find_all(text, edits)
    edited = apply(text, replacements)
    old, new = split_lines(text), split_lines(edited)
    diff = _presentable(context_diff(old, new, changes(old, new, replacements)))
    if target.linked:
        diff = f"{target.name}\n{diff}"
    return _Plan(target, mark + edited.encode(errors="surrogateescape"), diff)


def _decode(target: Target) -> tuple[bytes, str]:
    """The byte order mark and the text; bytes that are not UTF-8 become escapes that turn back into them."""
    mark, encoding = byte_order_mark(target.content)
    if encoding != "utf-8":
        raise ToolError(
            f"{target.path} is {encoding.upper()} text, which edit cannot change",
            hint="convert it first with bash: iconv",
        )
    if not target.whole:
        raise ToolError(
            f"{target.path} is larger than {_MOST_EDITED_BYTES} bytes, too large for edit", hint="use bash: sed"
        )
    if b"\0" in target.content:
        raise ToolError(f"{target.path} is a binary file of {len(target.content)} bytes", hint="use bash to change it")
    return mark, codecs.decode(target.content[len(mark) :], "utf-8", "surrogateescape")


def _clean(text: str) -> str:
    """Unpaired surrogates from the model must not pass for escaped bytes."""
    return to_bytes(text)[0].decode()


def _presentable(diff: str) -> str:
    return diff.encode(errors="surrogateescape").decode(errors="replace")


def _carry_out(plan: _Plan, wanted: Wanted) -> None:
    with explained(plan.target.path):
        replace(plan.target, plan.data, wanted)
