"""`hilt ext call` and `hilt ext run`: try one tool or one command of an extension, without a model."""

import argparse
import asyncio
import json
import time
from typing import Any

import msgspec

from hilt.agent.schema import problems
from hilt.cli.ext.alone import Alone, alone, panel_text
from hilt.cli.ext.arguments import arguments
from hilt.cli.ext.picking import pick
from hilt.cli.ext.site import Site, Told, tell
from hilt.embedding.called import Called
from hilt.errors import UsageError
from hilt.frontends.encode import event_json, json_line
from hilt.model.content import Image, Text
from hilt.model.contributions import Tool
from hilt.model.events import Displayed, Event, PanelShown
from hilt.packages.members import quoted

_SHOWN = 60


def call(site: Site, options: argparse.Namespace) -> Told:
    args = arguments(options.arguments)
    return asyncio.run(_call(site, options, args))


def run(site: Site, options: argparse.Namespace) -> Told:
    return asyncio.run(_run(site, options))


async def _call(site: Site, options: argparse.Namespace, args: dict[str, Any]) -> Told:
    async with alone(site, pick(site, options.target), lambda _: False) as it:
        tool = _tool(it, options.tool)
        if wrong := problems(tool.schema, args):
            schema = json.dumps(tool.schema, ensure_ascii=False)
            raise UsageError(
                f"the arguments do not fit {tool.name}: {'; '.join(wrong)}", hint=f"its schema is {schema}"
            )
        began = time.monotonic()
        try:
            called = await it.host.call(
                tool.name,
                args,
                timeout=options.timeout,
                progress=lambda text: it.say(f"  … {text.rstrip()}"),
                direct=tool.exposure == "codemode",
            )
        except asyncio.CancelledError:
            tell(f"{tool.name} was cancelled, and {it.name} was told so; what it has done by then is unknown")
            raise
        elapsed = time.monotonic() - began
        await it.host.caught_up()
    return _outcome(it, called, elapsed)


def _tool(it: Alone, name: str) -> Tool:
    offered = it.host.snapshot().tools
    if name not in offered:
        raise _unknown(it.name, "tool", name, list(offered))
    return offered[name].tool


def _unknown(extension: str, kind: str, name: str, offered: list[str]) -> UsageError:
    import difflib  # 5 ms, and only for the mistaken

    near = difflib.get_close_matches(name[:_SHOWN], offered, 1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    listed = ", ".join(offered) or f"no {kind} at all"
    return UsageError(f'{extension} has no {kind} "{quoted(name)}"', hint=f"{meant}it offers {listed}")


def _outcome(it: Alone, called: Called, elapsed: float) -> Told:
    said = it.mask.text("\n".join(map(_block, called.content)))
    code = 1 if called.is_error else 0
    if code:
        tell(f"{called.tool} {called.status.replace('_', ' ')}")
    value = {
        "extension": it.name,
        "tool": called.tool,
        "status": called.status,
        "is_error": called.is_error,
        "content": [_described(block) for block in called.content],
        "args": called.args,
        "details": called.details,
        "ms": round(elapsed * 1000, 3),
        "events": [event_json(event) for event in it.events],
    }
    return Told(_masked(value, it), said, code)


def _block(block: Text | Image) -> str:
    return block.text if isinstance(block, Text) else f"[image, {block.mime_type}, {len(block.data):,} bytes]"


def _described(block: Text | Image) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "image", "mime_type": block.mime_type, "bytes": len(block.data)}


def _masked(value: Any, it: Alone) -> Any:
    return msgspec.json.decode(it.mask.line(json_line(value)))


async def _run(site: Site, options: argparse.Namespace) -> Told:
    answers: list[str] = []

    def show(event: Event) -> bool:
        """What it displays is the answer."""
        match event:
            case Displayed(text=text):
                answers.append(text)
            case PanelShown():
                answers.append(panel_text(event))
            case _:
                return False
        return True

    async with alone(site, pick(site, options.target), show) as it:
        name, _, rest = options.command.removeprefix("/").partition(" ")  # all of it may be one word of the shell's
        if it.host.snapshot().command(name) is None:
            raise _unknown(it.name, "command", f"/{name}", [f"/{one}" for one in it.host.snapshot().commands])
        began = time.monotonic()
        try:
            actions = await it.host.run(name, " ".join(filter(None, (rest, *options.words))), timeout=options.timeout)
        except asyncio.CancelledError:
            tell(f"/{name} was cancelled; what {it.name} has done by then is unknown")
            raise
        elapsed = time.monotonic() - began
        await it.host.caught_up()
    value = {
        "extension": it.name,
        "command": f"/{name}",
        "actions": [msgspec.to_builtins(action) for action in actions],
        "ms": round(elapsed * 1000, 3),
        "events": [event_json(event) for event in it.events],
    }
    return Told(_masked(value, it), it.mask.text("\n".join(answers)))
