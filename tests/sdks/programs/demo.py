"""Everything that an extension can do, once: the same program as demo.mjs and demo.go, for the table of all SDKs."""

import os

from hilt_sdk import (
    Block,
    Call,
    Event,
    Extension,
    Handled,
    Image,
    Insert,
    Intercepted,
    Model,
    Panel,
    Prompt,
    Replace,
    Reply,
    Request,
    Result,
    Rewrite,
    ToolError,
    ToolPrompt,
)

ext = Extension("demo", "1.0.0")
heard: list[str] = []
closed = False

# Tools


@ext.tool
def echo(call: Call, text: str, times: int = 1) -> str:
    """Say it again.

    Args:
        text: what to say
        times: how often
    """
    for number in range(times):
        call.progress(f"{number + 1}\n")
    return " ".join([text] * times)


@ext.tool
def slow(call: Call) -> str:
    "Wait until it is cancelled."
    call.on_cancel(lambda: ext.notify("slow was cancelled"))
    call.progress("waiting\n")
    return "stopped" if call.wait(30) else "waited"


@ext.tool
def picture() -> Image:
    "Show a picture."
    return Image(b"\x89PNG\r\n\x1a\n")


@ext.tool
def told() -> str:
    "Fail as one knows how to."
    raise ToolError("no such city", code="NO_CITY", hint="try Rome")


@ext.tool
def broken() -> str:
    "Fail as nobody expects."
    raise ValueError("boom")


@ext.tool
def data() -> dict[str, int]:
    "Give data."
    return {"sum": 3}


@ext.tool
def nan() -> dict[str, float]:
    "Give what JSON cannot hold."
    return {"x": float("nan")}


@ext.tool
def nothing() -> None:
    "Give nothing."


@ext.tool
def relay(call: Call, path: str) -> str:
    "Read a file by another tool."
    return f"read: {call.call_tool('read', {'path': path}).text.strip()}"


@ext.tool
def chatter() -> str:
    "Print to standard output, and have a program do so."
    print("printed by demo")
    os.system("echo echoed by demo")
    return "quiet"


# Commands


class Counter(Panel):
    title = "Counter"
    footer = "q closes"

    def __init__(self) -> None:
        self.count = 0
        self.typed = ""

    def render(self, width: int, height: int) -> list[str]:
        return [f"count {self.count}", f"typed {self.typed}", f"{width} x {height}"]

    def on_key(self, key: str, text: str) -> None:
        if key == "up":
            self.count += 1
        elif text == "q":
            self.close()
        else:
            self.typed += text

    def on_close(self) -> None:
        ext.notify("the counter was closed")


ext.command("show", "show words")(lambda args: f"shown {args}")
ext.command("nothing", "do nothing")(lambda args: None)
ext.command("insert", "insert words")(lambda args: Insert("inserted words"))
ext.command("prompt", "prompt the model")(lambda args: Prompt("prompted words"))
ext.command("explain", "have a file explained")(lambda args: ToolPrompt("read", {"path": args}, "Explain this."))
ext.command("count", "open a panel")(lambda args: Counter())


@ext.command("fail", "fail")
def fail(args: str) -> None:
    raise ToolError("it broke")


@ext.command("say", "say things to the user")
def say(args: str) -> None:
    ext.notify("a note", "success")
    ext.show("a text")
    ext.set_input("an input")
    ext.widget("w", "a widget")
    ext.overlay("o", "an overlay", title="Look")
    ext.status("s", "a word")
    ext.close_overlay("o")
    ext.widget("w", "")


@ext.command("submit", "send a prompt")
def submit(args: str) -> None:
    ext.submit("submitted words")


@ext.command("host", "ask the host")
def host(args: str) -> str:
    ext.host.set_session_title("A title")
    words = [ext.host.session_title(), ext.host.chat("2+2?").text, str(ext.settings.get("units", "none"))]
    return " | ".join([*words, ext.host_info.name])


@ext.command("ask", "ask the user")
def ask(args: str) -> str:
    return f"you chose {ext.host.ask('Which?', ['this', 'that'])}"


@ext.command("keep", "keep data")
def keep(args: str) -> str:
    with open(os.path.join(ext.data_dir, "kept.txt"), "a", encoding="utf-8") as file:
        file.write("kept\n")
    return os.path.basename(ext.data_dir)


@ext.command("events", "tell what has happened")
def events(args: str) -> str:
    told = "; ".join(["heard", *heard])
    heard.clear()
    return told


@ext.command("close", "let no turn begin")
def close(args: str) -> None:
    global closed
    closed = args == "on"


ext.shortcut("ctrl+g", "a key")(lambda: "pressed")

# What happens, and what may not


@ext.on("user_prompt_submit", "turn_start", "tool_call", "tool_result", "assistant_message", "turn_end")
def happened(event: Event) -> None:
    if event.name == "turn_start":
        heard.append(f"{event.name}:{event.step}")
    elif event.name in ("tool_call", "tool_result"):
        heard.append(f"{event.name}:{event.tool_name}")
    elif event.name == "turn_end":
        heard.append(f"{event.name}:{event.stop}")
    else:
        heard.append(f"{event.name}:{event.text}")


@ext.intercept("tool_call")
def guard(asked: Intercepted) -> Block | Rewrite | None:
    if asked.tool != "echo":
        return None
    text = asked.args.get("text")
    if text == "explode":
        raise ToolError("it exploded")
    if text == "forbidden":
        return Block("that is forbidden")
    return Rewrite({"text": "changed"}) if text == "change me" else None


@ext.intercept("turn_start")
def gate(asked: Intercepted) -> Block | None:
    return Block("no turns now") if closed else None


@ext.intercept("assistant_message")
def redact(asked: Intercepted) -> Replace | Block | None:
    if asked.text == "say nothing":
        return Block("nothing to say")
    return Replace(asked.text.replace("1234", "****")) if "1234" in asked.text else None


@ext.intercept("before_agent_start")
def brief(asked: Intercepted) -> str | None:
    return None if "Be brief." in asked.system_prompt else f"{asked.system_prompt}\nBe brief."


@ext.intercept("tool_result")
def loud(asked: Intercepted) -> str | Result | None:
    if asked.tool != "echo":
        return None
    if asked.text == "whisper":
        return Result("too quiet", is_error=True)
    return asked.text.upper() if asked.text == "loud" else None


# Words, messages, models

ext.prompt_section("Demo rules", "Use echo.")


@ext.message_hook()
def clock(text: str) -> str | None:
    return "It is noon." if "what time" in text else None


@ext.input_transformer()
def expand(text: str) -> str | Handled | None:
    if text == "note to self":
        return Handled()
    return text.replace("@me", "Ada") if "@me" in text else None


@ext.compactor()
def shorten(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    return messages[-1:]


@ext.provider("echoes", models=[Model("echo-1", "Echo", 8192)])
def answer(request: Request, reply: Reply) -> None:
    reply.thinking("hm")
    reply.text("you said: ")
    reply.text(request.text)
    reply.text(" (at noon)" if "It is noon." in request.system else "")
    reply.usage(5, 2)


@ext.on_ready
def ready() -> None:
    ext.host.subscribe("demo.topic", lambda data: ext.notify(f"heard {data['word']}"))


if __name__ == "__main__":
    ext.run()
