"""Where one extension may keep things and what it may touch: from its permissions to a policy of the sandbox."""

from collections.abc import Iterable
from pathlib import Path

from hilt.errors import StartError
from hilt.extensions.agent import Places
from hilt.packages.discovery import Found
from hilt.packages.permissions import Permissions
from hilt.transport.policy import Policy


def data_directory(found: Found, places: Places) -> Path:
    """Beside its code, where it may write there and always did; else apart from it, one for each project it is of."""
    if found.source == "project":
        from hashlib import sha256  # loads a large library; few extensions come with a project

        return places.data / f"{found.name}@{sha256(str(found.where).encode()).hexdigest()[:12]}"
    return found.directory if found.keeps_beside else places.data / found.name


def make_data_directory(found: Found, places: Places) -> Path:
    """Raises `OSError`."""
    data = data_directory(found, places)
    if data != found.directory:
        places.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.mkdir(mode=0o700, exist_ok=True)
    return data


def policy(found: Found, places: Places, project: Path) -> Policy | None:
    """What to hold it to; None when it runs as the user does. Makes its data directory. Raises `StartError`."""
    level = found.sandbox
    if level == "off":
        return None
    from hilt.transport.sandbox import secrets  # few extensions are confined

    try:
        data = make_data_directory(found, places)
    except OSError as error:
        raise StartError(
            f"its data directory cannot be made: {error.filename}: {error.strerror}", hint="check the disk"
        ) from error
    rights, home = _held_to(found), Path.home()

    def meant(paths: Iterable[str]) -> tuple[Path, ...]:
        return tuple(_place(path, project, data, home) for path in paths)

    readable, writable = (
        None if paths is None else meant(paths) for paths in (rights.paths("fs.read"), rights.paths("fs.write"))
    )
    own = (data, *(writable or ()))
    others = own if home.is_relative_to(project) else (*own, project)  # whose home it is has made the links there
    astray = tuple(path for path in (*(readable or ()), *(writable or ())) if _astray(path, others))
    readable, writable = (
        None if paths is None else tuple(path for path in paths if path not in astray and not _within(path, own))
        for paths in (readable, writable)
    )
    hidden = [*secrets(home), places.root, *meant(rights.withdrawn("fs.read"))]
    # No sandbox can leave readable what lies where all may be written, so such a place is out of sight as well.
    hidden += [path for path in meant(rights.withdrawn("fs.write")) if _reached(path, writable)]
    return Policy(
        level=level,
        code=found.directory,
        data=data,
        readable=readable,
        writable=writable,
        hidden=tuple(hidden),
        home=home,
        closed=(project,),  # which need not lie in the home directory
        network=rights.allows("net"),
        programs=rights.allows("exec"),
        own=_environment(found, places),
        astray=astray,
    )


def _held_to(found: Found) -> Permissions:
    """What counts in the sandbox. One without a list is confined only if somebody wants it to be, and then it has what
    the level leaves to everyone, and what it was granted."""
    rights = found.permissions
    if not rights.full or not (found.choices.sandbox or found.manifest.sandbox):
        return rights
    left = ("fs.read", "exec") if found.sandbox == "standard" else ()
    return Permissions(full=False, granted=(*left, *rights.granted), revoked=rights.revoked)


def _environment(found: Found, places: Places) -> tuple[Path, ...]:
    """Its own environment of Python, which lies among what is hidden from it."""
    if places.environments is None or found.source != "user":
        return ()
    own = places.environments / found.name
    return (own,) if Path(found.argv[0]).is_relative_to(own) else ()


def _place(path: str, project: Path, data: Path, home: Path) -> Path:
    for word, meant in (("${project}", project), ("${data}", data), ("~", home)):
        if path == word or path.startswith(f"{word}/"):
            return meant / path[len(word) :].lstrip("/")
    return Path(path)


def _within(path: Path, own: Iterable[Path]) -> bool:
    """Whether it lies in a place of its own: that needs no grant, and it could become a link at any moment."""
    from hilt.transport.runtimes import real_path  # few extensions are confined

    end = real_path(path)
    return any(end != root and end.is_relative_to(root) for root in map(real_path, own))


def _astray(path: Path, others: Iterable[Path]) -> bool:
    """Whether a place that was granted is not what was agreed to, but where a link leads that the project's author may
    have put there, or the extension when it ran before."""
    from hilt.transport.runtimes import hops, real_path  # few extensions are confined

    end = real_path(path)
    left = [root for root in map(real_path, others) if not end.is_relative_to(root)]
    return any(link.is_relative_to(root) for link, _ in hops(path) for root in left)


def _reached(path: Path, places: tuple[Path, ...] | None) -> bool:
    return places is None or any(_overlap(path, place) for place in places)


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
