"""Does a shell command plainly leave a folder? Reads words; expands and runs nothing.

Owns the table of what counts as leaving. Variables other than `$HOME`, substitutions, scripts and
programs can all hide a path from it: this stops accidents, not attackers.
"""

import os
import shlex
from pathlib import Path

from msgspec import Struct, field

_OPERATORS = "();<>|&\n"
_ROOT_COMMANDS = frozenset({"sudo", "su", "doas", "pkexec"})
_WRAPPERS = frozenset(
    {
        "!",
        "{",
        "if",
        "then",
        "else",
        "elif",
        "while",
        "until",
        "do",
        "env",
        "command",
        "exec",
        "nohup",
        "time",
        "setsid",
    }
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_CHANGE_EVERY_PATH = frozenset(
    {"rm", "rmdir", "unlink", "shred", "truncate", "chmod", "chown", "chgrp", "mv", "tee", "touch", "mkdir"}
)
_CHANGE_LAST_PATH = frozenset({"cp", "ln", "install"})
_HARMLESS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/")
_DEEPEST = 4  # `sh -c "sh -c …"` is followed this far


class _Place(Struct):
    """Where the command stands while its words are read."""

    cwd: Path
    root: Path
    outer: list[Path] = field(default_factory=list)
    """The folders to return to when a subshell ends."""

    def target(self, word: str) -> Path | None:
        """The path a word plainly names, or None when only a shell could tell."""
        for name in ("~", "$HOME", "${HOME}"):
            if word == name or word.startswith(name + "/"):
                word = os.path.expanduser("~") + word[len(name) :]  # noqa: PTH111 - never fails, unlike Path.home
                break
        if "$" in word or "`" in word:
            return None
        return Path(os.path.realpath(self.cwd / word))

    def outside(self, word: str) -> bool:
        if word.startswith(_HARMLESS):
            return False
        path = self.target(word)
        return path is not None and not path.is_relative_to(self.root)


def leaves(command: str, cwd: Path, root: Path, depth: int = 0) -> str:
    """Say in what way the command leaves the root, or nothing when it does not plainly do so."""
    place = _Place(cwd, root)
    words: list[str] = []
    expect_output = False
    for word in _tokens(command):
        if word and all(letter in _OPERATORS for letter in word):
            if not set(word) <= {"<", ">", "|", "&"} or not (">" in word or "<" in word):
                if reason := _simple_command(words, place, depth):
                    return reason
                words = []
            _enter_and_leave(word, place)
            expect_output = ">" in word
        elif expect_output:
            expect_output = False
            if not word.isdigit() and word != "-" and place.outside(word):
                return f'the command writes to "{word}", outside'
        else:
            words.append(word)
    return _simple_command(words, place, depth)


def _tokens(command: str) -> list[str]:
    """Words and operators. Where quotes do not match up, as in a here-document, line by line."""
    try:
        return _split(command)
    except ValueError:
        lines = command.split("\n")
    if len(lines) == 1:
        return command.split()
    return [token for line in lines for token in (*_tokens(line), "\n")]


def _split(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _enter_and_leave(operator: str, place: _Place) -> None:
    for letter in operator:
        if letter == "(":
            place.outer.append(place.cwd)
        elif letter == ")" and place.outer:
            place.cwd = place.outer.pop()


def _simple_command(words: list[str], place: _Place, depth: int) -> str:
    """Judge one command without operators, and follow its `cd`."""
    while words and (words[0] in _WRAPPERS or "=" in words[0].lstrip("=")):
        words = words[1:]
    if not words:
        return ""
    name, rest = words[0].rpartition("/")[2], words[1:]
    paths = [word for word in rest if not word.startswith("-")]
    if name in _ROOT_COMMANDS:
        return f'"{name}" acts as another user'
    if name == "mkfs" or name.startswith("mkfs."):
        return f'"{name}" formats a device'
    if name in ("cd", "pushd"):
        return _change_directory(rest, place)
    if name in _SHELLS and "-c" in rest[:-1] and depth < _DEEPEST:
        return leaves(rest[rest.index("-c") + 1], place.cwd, place.root, depth + 1)
    if name == "dd":
        paths = [word[3:] for word in rest if word.startswith("of=")]
    elif name in _CHANGE_LAST_PATH:
        paths = paths[-1:]
    elif name not in _CHANGE_EVERY_PATH:
        return ""
    for path in paths:
        if place.outside(path):
            return f'"{name}" would change "{path}", outside'
    return ""


def _change_directory(rest: list[str], place: _Place) -> str:
    words = [word for word in rest if word not in ("-P", "-L", "--")]
    word = words[0] if words else "~"
    if word == "-":
        return ""
    target = place.target(word)
    if target is None:
        return ""
    if not target.is_relative_to(place.root):
        return f'"cd {word}" leaves the folder'
    place.cwd = target
    return ""
