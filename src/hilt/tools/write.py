"""The `write` tool: a whole file, put in place at once."""

from msgspec import Struct

from hilt.errors import ToolError
from hilt.model.content import Args
from hilt.model.contributions import Effect, Invocation, Preview, Tool, ToolOutput
from hilt.tools.arguments import parse
from hilt.tools.background import Wanted, in_thread
from hilt.tools.diff import compare, split_lines, unified_diff
from hilt.tools.files import Target, replace, survey
from hilt.tools.paths import absolute, explained
from hilt.tools.shown import keep_promise
from hilt.tools.text import clip, to_bytes
from hilt.tools.workspace import Workspace

_MOST_COMPARED_BYTES = 4 * 1024 * 1024
_SHORT_DIFF_LINES = 200
_SHORT_DIFF_BYTES = 16 * 1024

_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File to write: absolute, relative to the working directory, or ~/…"},
        "content": {"type": "string", "description": "Everything the file shall contain"},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}


class _WriteArgs(Struct, frozen=True):
    path: str
    content: str


class _Plan(Struct, frozen=True):
    target: Target
    data: bytes
    lines: int
    replaced_characters: int
    """Unpaired surrogates: no file can hold them."""
    diff: str
    """Whole."""

    @property
    def preview(self) -> Preview:
        return Preview("diff", self.diff)

    @property
    def changes(self) -> bool:
        return self.target.before is None or not self.target.whole or self.target.content != self.data


def write_tool(workspace: Workspace) -> Tool:
    async def invoke(invocation: Invocation) -> ToolOutput:
        args = parse(invocation.args, _WriteArgs)
        plan = await in_thread(lambda _: _plan(workspace, args))
        keep_promise(invocation, plan.preview, plan.target)
        if plan.changes:
            workspace.remember(invocation.call_id, plan.target.real)
            await in_thread(lambda wanted: _carry_out(plan, wanted))
        return _output(plan)

    async def preview(raw: Args) -> Preview:
        args = parse(raw, _WriteArgs)
        return (await in_thread(lambda _: _plan(workspace, args))).preview

    return Tool(
        "write",
        "Create a file or replace all of its content. Missing directories are made. To change part of a file, "
        "prefer edit.",
        _SCHEMA,
        invoke,
        effect=Effect.WRITE,
        preview=preview,
    )


def _plan(workspace: Workspace, args: _WriteArgs) -> _Plan:
    with explained(absolute(args.path, workspace.cwd)):
        target = survey(workspace, args.path, _MOST_COMPARED_BYTES)
    data, replaced = to_bytes(args.content)
    lines = split_lines(data.decode())
    return _Plan(target, data, len(lines), replaced, _diff(target, lines))


def _diff(target: Target, new: list[str]) -> str:
    name = target.name
    if not target.whole or b"\0" in target.content:
        size = target.before.st_size if target.before else 0
        kind = "binary" if b"\0" in target.content else "large"
        rows = [f"--- {name} ({kind}, {size} bytes, all replaced)", f"+++ {name}"]
        return "\n".join(rows + ["+" + line.removesuffix("\n") for line in new])
    old = split_lines(target.content.decode(errors="replace"))
    return unified_diff(old, new, compare(old, new), name, created=target.before is None)


def _carry_out(plan: _Plan, wanted: Wanted) -> None:
    with explained(plan.target.path):
        try:
            replace(plan.target, plan.data, wanted)
        except FileNotFoundError as error:
            raise ToolError(
                f"{plan.target.path}: its directory vanished meanwhile", hint="check the directory with ls, then retry"
            ) from error


def _output(plan: _Plan) -> ToolOutput:
    created = plan.target.before is None
    did = "Created" if created else "Replaced" if plan.changes else "Unchanged, it already had this content:"
    text = f"{did} {plan.target.name} ({plan.lines} line{'s' * (plan.lines != 1)}, {len(plan.data)} bytes)"
    if plan.replaced_characters:
        text += f"\n{plan.replaced_characters} unpaired surrogate(s) in the content were written as U+FFFD"
    return ToolOutput.of(
        text,
        path=str(plan.target.path),
        diff=clip(plan.diff, _SHORT_DIFF_LINES, _SHORT_DIFF_BYTES),
        created=created,
        bytes=len(plan.data),
        lines=plan.lines,
    )
