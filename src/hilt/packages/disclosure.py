"""What somebody should know before an extension may run: the text, whole, whoever shows it.

Nothing is cut short and nothing is left out: what is not shown here cannot have been agreed to. Making hidden
characters visible is up to the face that shows it.
"""

import shlex
from collections.abc import Iterable

from hilt.packages.discovery import Found
from hilt.packages.manifest import SandboxLevel
from hilt.packages.oddities import Oddity
from hilt.packages.permissions import CONSENTED, meaning
from hilt.packages.trees import Changes, Tree

_FULL = (
    "full access: it may do whatever you may, have your keys for every provider, and read and change the conversation "
    "(its manifest has no list of permissions)"
)
_LEVELS: dict[SandboxLevel, str] = {
    "off": "none: it runs with your rights",
    "standard": "standard: it writes only where it may, and your keys are hidden",
    "strict": "strict: it sees the system, its own files and what it may see",
}


def disclosure(found: Found, command: Iterable[str], tree: Tree | None = None, odd: Iterable[Oddity] = ()) -> str:
    """About one extension: its `command` as it will be run, its files, and whatever is odd about them.

    Without a tree, nothing is said of files: they are the user's own, and may change.
    """
    manifest = found.manifest
    about = f": {manifest.description}" if manifest.description else ""
    lines = [f"{found.name} {manifest.version}".rstrip() + about]
    lines += [f"  in        {found.where}", f"  runs      {shlex.join(command) or 'nothing'}"]
    lines += [f"  may       {one}" for one in (*_rights(found), *_granted(found))]
    lines += [f"  may not   {meaning(one)}  [{one}]  (you revoked it)" for one in found.choices.revoked]
    lines.append(f"  sandbox   {_LEVELS[found.sandbox]}")
    if tree:
        lines.append(f"  size      {len(tree.files)} file{'s' * (len(tree.files) != 1)}, {size(tree.size)}")
    lines += [f"  odd       {remark(one)}" for one in odd]
    return "\n".join(map(_one, lines))


def remark(oddity: Oddity) -> str:
    line = f", line {oddity.line}," if oddity.line else ""
    return f"{oddity.file}{line} {oddity.what}"


def listed(difference: Changes) -> str:
    """Every file that differs, a line each."""
    marks = (("+", difference.added), ("-", difference.removed), ("~", difference.changed))
    return "\n".join(f"  {mark} {path}" for mark, paths in marks for path in paths)


def size(count: int) -> str:
    if count < 10_000:
        return f"{count} bytes"
    return f"{count >> 10} KiB" if count < 10 * 1024 * 1024 else f"{count >> 20} MiB"


def _one(line: str) -> str:
    """With a mark before whatever follows a line break, lest a stranger's text pass for a line of ours."""
    return line.replace("\n", "\n            | ")


def _rights(found: Found) -> list[str]:
    asked = found.manifest.permissions
    if asked is None:
        return [_FULL]
    if not asked:
        return ["nothing beyond its own directory and answering the host"]
    return [f"{meaning(one)}  [{one}]{_by_name(one)}" for one in asked if not _taken(found, one)]


def _granted(found: Found) -> list[str]:
    """What it is given without asking, perhaps since another of its name was here."""
    asked = found.manifest.permissions or ()
    extra = (one for one in found.choices.grants if one not in asked and not _taken(found, one))
    return [f"{meaning(one)}  [{one}]  (you granted it)" for one in extra]


def _taken(found: Found, permission: str) -> bool:
    """Whether the user took it away, by itself or with all of its kind: then it is only told what it may not."""
    return not {permission, permission.partition(":")[0]}.isdisjoint(found.choices.revoked)


def _by_name(permission: str) -> str:
    return "  (a secret of yours)" if permission.partition(":")[0] in CONSENTED else ""
