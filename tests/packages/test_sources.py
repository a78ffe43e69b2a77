import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import PackageError
from hilt.packages.install.sources import Archive, Directory, File, Git, parse_source
from support.packages import extension, repository
from support.properties import patient

GOOD = {
    "https://example.org/owner/repo": Git("https://example.org/owner/repo"),
    "https://example.org/owner/repo.git@v1.2": Git("https://example.org/owner/repo.git", "v1.2"),
    "https://example.org/owner/repo@feature/new-thing": Git("https://example.org/owner/repo", "feature/new-thing"),
    "https://example.org/owner/repo@pkg@1.0.0": Git("https://example.org/owner/repo", "pkg@1.0.0"),
    "https://example.org/@scope/repo@v1": Git("https://example.org/@scope/repo", "v1"),
    "https://example.org:8443/~me/repo": Git("https://example.org:8443/~me/repo"),
    "https://[::1]:8443/repo": Git("https://[::1]:8443/repo"),
    "HTTPS://example.org/repo": Git("https://example.org/repo"),
    "https://example.org/a%20b/repo": Git("https://example.org/a%20b/repo"),
    "ssh://git@example.org/owner/repo": Git("ssh://git@example.org/owner/repo"),
    "ssh://git@example.org:2222/owner/repo@main": Git("ssh://git@example.org:2222/owner/repo", "main"),
    "git+ssh://git@example.org/owner/repo@v1": Git("ssh://git@example.org/owner/repo", "v1"),
    "ssh://example.org/repo": Git("ssh://example.org/repo"),
    "git@example.org:owner/repo": Git("git@example.org:owner/repo"),
    "git@example.org:owner/repo.git@v1": Git("git@example.org:owner/repo.git", "v1"),
    "example.org:repo": Git("example.org:repo"),
    f"https://example.org/repo@{'a' * 40}": Git("https://example.org/repo", "a" * 40),
}

# A7
HOSTILE = {
    "": "nothing",
    "-oProxyCommand=touch evil": "option",
    "--upload-pack=touch evil": "option",
    "ext::sh -c touch% evil": "program",
    "fd::17/evil": "program",
    "https::https://example.org/repo": "program",
    "http://example.org/repo": "not encrypted",
    "git://example.org/repo": "not encrypted",
    "ftp://example.org/repo": "not encrypted",
    "rsync://example.org/repo": "scheme",
    "javascript://example.org/repo": "scheme",
    "file:///etc": "reads any",
    "FILE:///etc": "reads any",
    "ssh://-oProxyCommand=evil/repo": "host",
    "ssh://git@-oProxyCommand=evil/repo": "host",
    "ssh://-oProxyCommand=evil@example.org/repo": "user",
    "ssh://git:secret@example.org/repo": "password",
    "ssh://%2doProxyCommand=evil/repo": "host",
    "ssh://example.org/-repo": "option",
    "ssh://example.org/%2drepo": "option",
    "ssh://example.org:22x/repo": "port",
    "ssh://example.org:-oX/repo": "port",
    "git@-oProxyCommand=evil:repo": "host",
    "-evil@example.org:repo": "option",
    "git@example.org:-repo": "option",
    "git@example.org:--upload-pack=evil": "option",
    "git@example.org:": "no repository",
    "https://user:secret@example.org/repo": "password",
    "https://ghp_token@example.org/repo": "password",
    "https://example.org/repo?x=1": "characters",
    "https://example.org/repo#frag": "characters",
    "https://example.org/a%0ahost=evil/repo": "hides",
    "https://example.org/a%00b": "hides",
    "https://example.org/a%5cb": "hides",
    "https://example.org/../repo": "..",
    "https://example.org/%2e%2e/repo": "..",
    "https://ex\u0430mple.org/repo": "ASCII|look like",
    "https:///repo": "no host",
    "https://example.org": "no repository",
    "https://example.org/": "no repository",
    "https://exam ple.org/repo": "host",
    "https://example.org/re po": "characters",
    "https://example.org/repo;touch evil": "characters",
    "https://example.org/$(touch evil)": "characters",
    "https://example.org/repo\nevil": "cannot be shown",
    "https://example.org/repo\x1b[2J": "cannot be shown",
    "https://example.org/re\u202epo": "cannot be shown",
    "C:\\evil\\repo": "drive letter",
    "https://example.org/" + "a" * 3000: "too long",
    "https://example.org/repo@-evil": "option",
    "https://example.org/repo@--upload-pack=x": "option",
    "https://example.org/repo@": "without a ref",
    "https://example.org/repo@a..b": "none that git",
    "https://example.org/repo@a:b": "no part of a ref",
    "https://example.org/repo@a~1": "no part of a ref",
    "https://example.org/repo@a^": "no part of a ref",
    "https://example.org/repo@a b": "no part of a ref",
    "https://example.org/repo@a\\b": "no part of a ref",
    "https://example.org/repo@a*": "no part of a ref",
    "https://example.org/repo@@{-1}": "no part of a ref",
    "https://example.org/repo@a/-b": "none that git",
    "https://example.org/repo@.hidden": "none that git",
    "https://example.org/repo@a.lock": "none that git",
    "https://example.org/repo@a//b": "none that git",
}


@pytest.mark.parametrize("text", GOOD)
def test_a_good_address_is_taken(text: str, tmp_path: Path) -> None:
    assert parse_source(text, cwd=tmp_path) == GOOD[text]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_address_is_refused_with_its_reason(text: str, tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=HOSTILE[text]) as caught:
        parse_source(text, cwd=tmp_path)
    assert caught.value.hint
    assert caught.value.message.isprintable() and len(caught.value.message) < 500
    assert "secret" not in caught.value.message and "ghp_token" not in caught.value.message


def test_file_urls_are_taken_only_when_that_was_said(tmp_path: Path) -> None:
    assert parse_source("file:///a/b@v1", allow_file=True) == Git("file:///a/b", "v1", local=True)
    for bad in ("file://host/a", "file://", "file:///-a", "file:///a/../b"):
        with pytest.raises(PackageError):
            parse_source(bad, allow_file=True)


def test_paths_are_told_apart_by_what_lies_there(tmp_path: Path) -> None:
    extension(tmp_path / "plain")
    repo = repository(tmp_path / "repo")
    repo.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    for name in ("one.py", "two.zip", "three.TAR.GZ", "odd@name"):
        (tmp_path / name).write_text("")
    told = {
        "plain": Directory(tmp_path / "plain"),
        "./repo": Directory(tmp_path / "repo"),
        "repo@main": Git(str(tmp_path / "repo"), "main", local=True),
        f"{tmp_path}/repo@v1": Git(str(tmp_path / "repo"), "v1", local=True),
        "bare.git": Git(str(tmp_path / "bare.git"), local=True),
        "bare.git@main": Git(str(tmp_path / "bare.git"), "main", local=True),
        "one.py": File(tmp_path / "one.py"),
        "two.zip": Archive(tmp_path / "two.zip"),
        "three.TAR.GZ": Archive(tmp_path / "three.TAR.GZ"),
        "odd@name": File(tmp_path / "odd@name"),
        "plain/../one.py": File(tmp_path / "one.py"),
    }
    assert {text: parse_source(text, cwd=tmp_path) for text in told} == told


def test_a_path_under_the_home_is_known_by_its_short_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    extension(tmp_path / "x")
    assert parse_source("~/x", cwd=Path("/")) == Directory(tmp_path / "x")


@pytest.mark.parametrize("text", ["nowhere", "plain@v1", "nowhere@v1", "pipe", "repo@-x", "repo@a..b", "repo@"])
def test_a_path_that_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    extension(tmp_path / "plain")
    repository(tmp_path / "repo")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PackageError) as caught:
        parse_source(text, cwd=tmp_path)
    assert caught.value.hint


@patient
@given(st.text(max_size=40), st.sampled_from(["", "https://", "ssh://", "git@host:", "https://h/r@", "ssh://h/"]))
def test_whatever_is_taken_begins_with_no_option_anywhere(text: str, front: str) -> None:
    try:
        source = parse_source(front + text, cwd=Path("/nonexistent"))
    except PackageError:
        return
    assert isinstance(source, Git)
    assert not source.ref.startswith("-")
    assert all(not part.startswith("-") for part in source.url.replace("@", "/").replace(":", "/").split("/"))
    assert source.url.isascii() and source.url.isprintable() and " " not in source.url
