"""An agent of forty lines with extensions of both dialects: a weather tool, and a guard that has a say in its calls."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from hilt.extensions import ExtensionHost

HERE = Path(__file__).parent


def ask_model(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Put your model's API here. This one calls the first tool with the last word, then repeats what it got."""
    last = messages[-1]
    if last["role"] == "tool":
        return {"text": f"I asked, and this is the answer: {last['content']}"}
    return {"call": {"id": "1", "name": tools[0]["name"], "args": {"city": last["content"].split()[-1].strip("?")}}}


async def answer(prompt: str) -> str:
    async with ExtensionHost.open([HERE / "weather", HERE / "guard"], on_event=show) as host:
        system = await host.system_prompt("You are a helpful agent.")
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        while True:
            tools = [{"name": t.name, "description": t.description, "parameters": t.schema} for t in host.tools()]
            reply = ask_model(messages, tools)
            if "text" in reply:
                return str(reply["text"])
            result = await host.call(reply["call"]["name"], reply["call"]["args"], call_id=reply["call"]["id"])
            messages.append({"role": "tool", "content": result.text})


def show(event: Any) -> None:
    if (kind := type(event).__name__) in ("Noticed", "Notified"):
        print(f"[{kind}] {event.message}", file=sys.stderr)


if __name__ == "__main__":
    print(asyncio.run(answer(" ".join(sys.argv[1:]) or "How is the weather in Rome?")))
