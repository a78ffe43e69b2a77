"""Does a shell command plainly leave a folder? Reads words; expands and runs nothing.

Owns the table of what counts as leaving; where a word leads is `leading`'s. Variables other than
`$HOME`, substitutions, scripts and programs can all hide a path from it: this stops accidents, not
attackers, and is no security boundary.
"""

import re
import shlex
from collections import Counter, deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from hilt.tools.leading import Place

_OPERATORS = "();<>|&\n"
_ROOT_COMMANDS = frozenset({"sudo", "su", "doas", "pkexec"})
_WRAPPERS = frozenset({"!", "{", "if", "then", "else", "elif", "while", "until", "do"}) | frozenset(
    {"env", "command", "exec", "nohup", "time", "setsid", "export", "readonly", "local"}
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_CHANGE_EVERY_PATH = frozenset(
    {"rm", "rmdir", "unlink", "shred", "truncate", "chmod", "chown", "chgrp", "mv", "tee", "touch", "mkdir"}
)
_CHANGE_LAST_PATH = frozenset({"cp", "ln", "install"})
_TAKE_SEPARATORS = frozenset({"awk", "column", "cut", "paste", "sort", "tr"})
"""A lone `/` is a letter to these."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SHELL_SCRIPT = re.compile(r"-[a-z]*c")
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"\\]?)(\w+)")
_DEEPEST = 4  # `sh -c "sh -c …"` is followed this far


def leaves(command: str, cwd: Path, root: Path, depth: int = 0) -> str:
    """Say in what way the command leaves the root, or nothing when it does not plainly do so."""
    place = Place(cwd, root)
    words: list[str] = []
    redirection = ""
    for word in _uncommented(_tokens(_without_documents(command))):
        if _is_operator(word):
            if not set(word) <= {"<", ">", "|", "&"} or not (">" in word or "<" in word):
                if reason := _simple_command(words, place, depth):
                    return reason
                words = []
            _enter_and_leave(word, place)
            redirection = word if word[-1] != "(" and ("<" in word or ">" in word) else ""
        elif redirection:
            if reason := _redirected(redirection, word, place):
                return reason
            redirection = ""
        else:
            words.append(word)
    return _simple_command(words, place, depth)


def _without_documents(command: str) -> str:
    """The command without its here-documents, which are text; those that a shell reads are commands and stay."""
    lines: list[str] = []
    rest = deque(command.split("\n"))
    ends = Counter(line.lstrip("\t") for line in rest)  # of the lines still to come
    while rest:
        line = rest.popleft()
        ends[line.lstrip("\t")] -= 1
        lines.append(line)
        if not _SHELLS.isdisjoint(re.split(r"[^\w.-]+", line)):
            continue
        for found in _HERE_DOCUMENT.finditer(line):
            while ends[found[2]] > 0:
                text = rest.popleft().lstrip("\t")
                ends[text] -= 1
                if text == found[2]:
                    break
    return "\n".join(lines)


def _tokens(command: str) -> list[str]:
    """Words and operators. Where quotes do not match up, line by line."""
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


def _uncommented(words: list[str]) -> Iterator[str]:
    """All but comments: from `#` on its own, or from a command that would begin with it, to the end of the line."""
    comment, first = False, True
    for word in words:
        if _is_operator(word):
            comment = comment and "\n" not in word
            first = True
        elif word == "#" or (first and word.startswith("#")):
            comment = True
        else:
            first = False
        if not comment:
            yield word


def _is_operator(word: str) -> bool:
    return bool(word) and all(letter in _OPERATORS for letter in word)


def _enter_and_leave(operator: str, place: Place) -> None:
    for letter in operator:
        if letter == "(":
            place.outer.append(place.cwd)
        elif letter == ")" and place.outer:
            place.cwd = place.outer.pop()


def _redirected(operator: str, word: str, place: Place) -> str:
    if operator.startswith("<<") or word.isdigit() or word == "-" or not place.outside(word):
        return ""
    return f'the command {"writes to" if ">" in operator else "reads"} "{word}", outside'


def _simple_command(words: list[str], place: Place, depth: int) -> str:
    """Judge one command without operators, and follow its `cd`."""
    while words and (words[0].rpartition("/")[2] in _WRAPPERS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    if not words:
        return ""
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in _ROOT_COMMANDS:
        return f'"{name}" acts as another user'
    if name == "mkfs" or name.startswith("mkfs."):
        return f'"{name}" formats a device'
    if name in ("cd", "pushd"):
        return _change_directory(rest, place)
    script = _script(name, rest) if depth < _DEEPEST else ""
    return leaves(script, place.cwd, place.root, depth + 1) or _changed(name, rest, place) or _given(name, rest, place)


def _script(name: str, rest: list[str]) -> str:
    """The command line that this command runs as such."""
    if name == "eval":
        return " ".join(rest)
    if name in _SHELLS:
        for option, word in pairwise(rest):
            if _SHELL_SCRIPT.fullmatch(option):
                return word
    return ""


def _changed(name: str, rest: list[str], place: Place) -> str:
    """What a command changes counts as a path, whether or not anything is there."""
    paths = [word for word in rest if not word.startswith("-")]
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


def _given(name: str, rest: list[str], place: Place) -> str:
    for word in rest:
        if word == "/" and name in _TAKE_SEPARATORS:
            continue
        if place.plainly_outside(word):
            return f'"{name}" is given "{word}", outside'
    return ""


def _change_directory(rest: list[str], place: Place) -> str:
    words = [word for word in rest if word not in ("-P", "-L", "--")]
    word = words[0] if words else "~"
    if word == "-":
        return ""
    if place.outside(word):
        return f'"cd {word}" leaves the folder'
    place.cwd = place.target(word) or place.cwd
    return ""
