"""A tool, a slash command and a guard in one file, with nothing but the standard library.

An extension is a program that reads frames from stdin and writes frames to stdout, one JSON object a line.
Whatever else it has to say goes to stderr, which the host keeps in a log.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def send(**frame: Any) -> None:
    sys.stdout.buffer.write(json.dumps(frame).encode() + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    # Say who we are and what we offer. All of this may be sent before the host has answered.
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "without it, everywhere"}}}
    send(type="hello", name="project-kit", version="1.0.0", capabilities=["commands", "tools", "events"])
    send(type="register_command", name="todos", description="list open tasks: /todos [path]")
    send(type="register_tool", name="todo_scan", description="List the TODO and FIXME comments.", schema=schema)
    send(type="subscribe", intercept=["tool_call"])
    send(type="ready")
    project = Path()
    for line in sys.stdin.buffer:  # ends when the host closes the pipe
        try:
            frame = json.loads(line)
        except ValueError:
            print("a line that is no JSON was left out", file=sys.stderr)
            continue
        match frame["type"]:  # there will be others, which do not concern us
            case "hello_ack":
                project = Path(frame["cwd"]).resolve()  # our own working directory is where this file is
            case "command_invoked" if frame["name"] != "todos":
                send(type="command_response", id=frame["id"], error=f"unknown command: {frame['name']}")
            case "command_invoked":
                found, failed = scan(project, frame.get("args", ""))  # nothing typed, no `args`
                shown = {"error": found} if failed else {"action": "display", "display": found}
                send(type="command_response", id=frame["id"], **shown)
            case "tool_call" if frame["name"] != "todo_scan":
                answer = [{"type": "text", "text": f"unknown tool: {frame['name']}"}]
                send(type="tool_result", id=frame["id"], content=answer, is_error=True)
            case "tool_call":
                found, failed = scan(project, frame["args"].get("path", ""))
                send(type="tool_result", id=frame["id"], content=[{"type": "text", "text": found}], is_error=failed)
            case "event_intercept":
                send(type="event_intercept_response", id=frame["id"], **verdict(frame))
            case "shutdown":
                send(type="shutdown_ack")
                return


def scan(project: Path, path: str) -> tuple[str, bool]:
    """What there is, or what went wrong and True: a call gets an answer whatever happens."""
    # -I leaves out what is not text; directories that begin with a dot are rarely the author's own.
    grep = ["grep", "-rnHIEo", "--exclude-dir=.?*", "--exclude-dir=node_modules", r"\b(TODO|FIXME)\b.{0,200}", "--"]
    try:
        place = (project / path).resolve()
        if not place.is_relative_to(project) or not place.exists():
            return f"{path} is not in this project", True
        # Our stdin is the wire: no child may have it. And the guard waits for this, so it gets less time than that has.
        grep.append(str(place.relative_to(project)))
        ran = subprocess.run(grep, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, timeout=3)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return str(error), True
    lines = ran.stdout.decode(errors="replace").split("\n")[:-1]
    more = f"\n… and {len(lines) - 200} more" if len(lines) > 200 else ""
    return "\n".join(lines[:200]) + more or "no open tasks", False


# The guard: a seat belt, which stops slips, and not a wall, which would stop an attacker.
def verdict(question: dict[str, Any]) -> dict[str, Any]:
    """If this crashes or hangs, `guard` in extension.json says what holds: the call is blocked."""
    if question["tool_name"] == "bash" and (reason := refusal(str(question["tool_args"].get("command")))):
        return {"block": True, "reason": f"project-kit refuses this: {reason}. The user can run it by hand."}
    return {}  # an answer with nothing but its id allows


def refusal(line: str) -> str:
    """Why this command line must not run, or nothing."""
    fetches = runs = False
    for operator, words in simple_commands(line):
        if operator == "||" or (operator and not set(operator) & set("|(`")):
            fetches = runs = False  # neither a pipe nor a substitution joins it to what came before
        for program, args in programs(words):
            fetches = fetches or program in ("curl", "wget")
            runs = runs or SHELL.fullmatch(program) is not None
            if reason := danger(program, args):
                return reason
        if fetches and runs:
            return "it runs a download that nobody has read"
    return ""


def danger(program: str, args: list[str]) -> str:
    said = " ".join(args)
    if program == "rm" and re.search(r"(^| )(-\w*[rR]|--recursive)", said) and any(map(holds_home, args)):
        return "it deletes a home directory, or everything"
    if program == "git" and "push" in args and re.search(r"(^| )(-\w*f|--force\b(?!-)|\+)", said):
        return "a forced push overwrites the work of others (--force-with-lease is allowed)"
    if program == "dd" and any(re.match(r"of=/dev/(?!null$|std)", arg) for arg in args):
        return "it overwrites a device"
    return "it formats a disk" if program.partition(".")[0] == "mkfs" else ""


def holds_home(target: str) -> bool:
    """Whether it is or contains the home directory: `/`, `/*`, `~`, `"$HOME"/`, `/home`."""
    named = re.sub(r"^\$(HOME\b|\{HOME\})", "~", target)
    place = os.path.normpath(os.path.expanduser(named.rstrip("*/")) or "/")
    return named.startswith(("/", "~")) and Path.home().is_relative_to(place)


SHELL = re.compile(r"(ba|da|k|z)?sh|eval|source")
WRAPPER = re.compile(r"sudo|doas|env|nohup|nice|time|timeout|command|exec|xargs|find|if|then|else|while|do|[!{]|\w+=.*")


def programs(words: list[str]) -> list[tuple[str, list[str]]]:
    """What a command may run, with the arguments: its first word, or any behind one such as `sudo` or `NAME=value`."""
    reach = len(words) if WRAPPER.fullmatch(words[0]) else 1
    return [(os.path.basename(word), words[place + 1 :]) for place, word in enumerate(words[:reach])]


def simple_commands(line: str) -> Iterator[tuple[str, list[str]]]:
    """The words of each command of a line, and the operator before it. What is quoted for a shell is looked into."""
    operator, words = "", list[str]()
    for token in [*tokens(line), ";"]:
        if not re.fullmatch(r"[;&|()<>\n`]+", token):
            words.append(token)
        elif re.search(r"[;|()\n`]", token) or token in ("&", "&&"):  # the others redirect, which changes nothing here
            if words:
                yield operator, words
                for_a_shell = any(SHELL.fullmatch(name) for name, _ in programs(words))
                for word in words:
                    if re.search(r"\$\(|`|\s" if for_a_shell else r"\$\(|`", word):
                        yield from simple_commands(word)
                operator = ""
            operator, words = operator + token, []


def tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=";&|()<>\n`")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:  # an open quotation, as in a here-document: look at everything as if it were not quoted
        return tokens(re.sub(r"[\"'\\]", " ", line))


if __name__ == "__main__":
    main()
