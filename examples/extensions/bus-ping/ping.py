"""One half of a pair that talks over hilt's bus: /ping asks, and whoever listens on `ping` answers on `pong`."""

import queue

from hilt_sdk import Extension

ext = Extension("bus-ping", "1.0.0")
answers: queue.Queue[str] = queue.Queue(maxsize=100)


@ext.on_ready
def listen() -> None:
    ext.host.subscribe("pong", lambda data: answers.put_nowait(str(data["text"])))


@ext.command("ping", "ask the other half of the pair")
def ping(args: str) -> str:
    ext.host.publish("ping", {"text": args or "hello"})
    try:
        return answers.get(timeout=2)
    except queue.Empty:
        return "nobody answered: is bus-pong running?"


if __name__ == "__main__":
    ext.run()
