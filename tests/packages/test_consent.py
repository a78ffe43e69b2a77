"""Who agreed to an extension's full access, by the way in which it came to be there."""

from pathlib import Path

import msgspec

from hilt.packages.discovery import Found
from hilt.packages.finder import Finder
from hilt.packages.install.installing import link, staged
from hilt.packages.install.shelf import Shelf
from hilt.packages.install.sources import Directory
from hilt.packages.trust.screening import Gate
from hilt.packages.trust.store import TrustStore
from support.packages import extension

PATH = "/usr/bin:/bin"


def finder(root: Path, *flags: str) -> Finder:
    gate = Gate(TrustStore(root / "trust.json"), root / "project", root / "trusted", PATH, open=False)
    return Finder(flags, root / "extensions", (), False, PATH, root, {}, root / "extensions.lock", gate)


def one(root: Path, *flags: str) -> Found:
    discovery = finder(root, *flags).all()
    assert discovery.problems == ()
    [found] = discovery.found
    assert finder(root, *flags).again(found) == found, "also when it is started anew"
    return found


def test_one_that_the_command_line_names_needs_no_telling(tmp_path: Path) -> None:
    place = extension(tmp_path / "demo", "demo")
    assert one(tmp_path, str(place)).consented
    script = tmp_path / "single.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert one(tmp_path, str(script)).consented


def test_about_one_that_was_put_there_by_hand_nobody_was_asked(tmp_path: Path) -> None:
    extension(tmp_path / "extensions" / "demo", "demo")
    assert not one(tmp_path).consented
    assert not one(tmp_path).permissions.may_ask("auth:openai")
    assert one(tmp_path).permissions.full, "it still does what the user may do"


def test_of_one_that_was_installed_it_was_shown(tmp_path: Path) -> None:
    place = extension(tmp_path / "source" / "demo", "demo")
    with staged(
        Directory(place), Shelf(tmp_path / "extensions", tmp_path / "extensions.lock"), given="x", path=PATH
    ) as new:
        new.keep()
    assert one(tmp_path).consented and one(tmp_path).permissions.may_ask("auth:openai")


def test_of_a_linked_one_what_was_shown_counts_and_not_what_it_says_now(tmp_path: Path) -> None:
    place = extension(tmp_path / "source" / "demo", "demo", permissions=[])
    link(Shelf(tmp_path / "extensions", tmp_path / "extensions.lock"), place, given="x", path=PATH)
    assert not one(tmp_path).consented
    manifest = msgspec.json.decode((place / "extension.json").read_bytes())
    del manifest["permissions"]
    (place / "extension.json").write_bytes(msgspec.json.encode(manifest))
    found = one(tmp_path)
    assert found.permissions.full and not found.consented and not found.permissions.may_ask("conversation:read")
