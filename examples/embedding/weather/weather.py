"""A tool in the frames dialect: one JSON object a line, on stdin and stdout."""

import json
import sys
from typing import Any


def send(**frame: Any) -> None:
    print(json.dumps(frame), flush=True)


schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
send(type="hello", name="weather", version="1.0.0", capabilities=["tools"])
send(type="register_tool", name="weather", description="Get the weather for a city.", schema=schema)
send(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "tool_call":
        city = frame["args"].get("city")
        known = frame["name"] == "weather" and bool(city)
        text = f"{city}: sunny" if known else "there is no such tool, or no city"
        send(type="tool_result", id=frame["id"], content=[{"type": "text", "text": text}], is_error=not known)
    elif frame["type"] == "shutdown":
        break
