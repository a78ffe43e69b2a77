"""The least an extension can be: a Python script with the standard library, which answers whatever it is asked.

What others cost is measured against it. It is run as a program of its own, and imported by nobody.
"""

import json
import sys


def main() -> None:
    out = sys.stdout
    for frame in ({"type": "hello", "name": "bare"}, {"type": "register_tool", "name": "echo"}, {"type": "ready"}):
        out.write(json.dumps(frame) + "\n")
    out.flush()
    for line in sys.stdin:
        frame = json.loads(line)
        if frame["type"] == "tool_call":
            answer = {"type": "tool_result", "id": frame["id"], "content": [{"type": "text", "text": "ok"}]}
            out.write(json.dumps(answer) + "\n")
            out.flush()
        elif frame["type"] == "shutdown":
            return


if __name__ == "__main__":
    main()
