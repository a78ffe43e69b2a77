"""What a trace says of a line, what it never says, and that it holds up nobody, whatever becomes of its file."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import UsageError
from hilt.extensions.trace import Trace
from hilt.extensions.trace_line import LONGEST, Secrets, Who, written, written_raw
from hilt.model.masking import MASK, Mask
from hilt.packages.discovery import Found
from hilt.packages.environment import secrets_of
from hilt.packages.manifest import Manifest
from hilt.transport.channels import Channel
from hilt.transport.launch import Spec
from hilt.transport.lines import TooLong
from hilt.transport.process import started
from support.properties import patient

KEY = 'pw"with\\quotes-123'
SECRETS = Secrets((Mask([KEY]), Mask(secrets_of({"DEPLOY_TOKEN": "plainvalue99", "PATH": "/usr/bin/plain"}))))
WHO = Who("weather", "frames", 7)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def line_of(value: Any) -> dict[str, Any]:
    return traced(json.dumps(value).encode())


def traced(line: bytes) -> dict[str, Any]:
    told = written(WHO, "from_extension", line, 1_700_000_000.25, 12.3456, SECRETS)
    assert told.endswith(b"\n") and told.count(b"\n") == 1
    return dict(json.loads(told))


@pytest.fixture
def found(tmp_path: Path) -> Found:
    return Found(Manifest("weather", "1.0", exec="x"), tmp_path, ("x",), "flag", 0)


def test_a_line_says_when_between_whom_which_way_and_what() -> None:
    assert line_of({"type": "ready"}) == {
        "time": "2023-11-14T22:13:20.250000Z",
        "at": 12.346,
        "extension": "weather",
        "pid": 7,
        "dialect": "frames",
        "direction": "from_extension",
        "frame": {"type": "ready"},
    }


@pytest.mark.parametrize("line", [b"hello?", b'{"a":1', b"\xff\xfe", b'{"n":1e999}', b"[" * 5000, b"{}{}"])
def test_what_is_no_json_is_kept_as_text(line: bytes) -> None:
    told = traced(line)
    assert told["frame"] is None
    assert told["raw"] == line.decode(errors="replace")[:4096] and ("cut" in told) == (len(line) > 4096)


@patient
@given(JSON, JSON)
def test_no_secret_is_in_a_trace_wherever_it_stands_and_however_it_is_written(one: Any, other: Any) -> None:
    inner = json.dumps({"deep": [KEY, one]})
    value = {KEY: one, "text": f"a {KEY} b", "json": inner, "list": [other, KEY], "of env": "plainvalue99"}
    for ascii_ in (True, False):
        line = json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
        told = written(WHO, "to_extension", line, 0, 0, SECRETS).decode()
        assert "quotes-123" not in told and "plainvalue99" not in told


def test_a_secret_is_hidden_also_where_every_letter_of_it_is_escaped() -> None:
    spelt = "".join(f"\\u{ord(letter):04x}" for letter in "plainvalue99")
    assert traced(f'{{"a":"{spelt}"}}'.encode())["frame"] == {"a": MASK}


def test_what_looks_like_a_key_is_hidden_and_what_only_sounds_like_one_is_not() -> None:
    github = "ghp_" + "a1B2" * 9
    frame = line_of(
        {
            "text": f"use {github}, then",
            "headers": {"Authorization": "Bearer abc", "x-api-key": "short"},
            "max_tokens": 5,
            "key": "ctrl+shift+k",
            "tokens": "three",
            "PATH": "/usr/bin/plain",
        }
    )["frame"]
    assert frame["text"] == f"use {MASK}, then" and set(frame["headers"].values()) == {MASK}
    assert frame["max_tokens"] == 5 and frame["key"] == "ctrl+shift+k" and frame["tokens"] == "three"
    assert frame["PATH"] == "/usr/bin/plain"


def test_a_long_frame_stays_json_and_says_what_was_cut() -> None:
    frame = {"type": "tool_result", "id": "9", "content": [{"type": "text", "text": "x" * LONGEST + KEY}]}
    told = line_of(frame)
    assert told["cut"] > LONGEST and told["frame"]["id"] == "9"
    assert told["frame"]["content"][0]["text"].startswith("x" * 1024 + "… [")
    many = line_of({"type": "a", "list": ["y" * 9] * 50_000})
    assert many["cut"] > LONGEST and many["frame"]["list"][200] == "… [49800 more]"
    assert "cut" not in line_of({"text": "x" * (LONGEST // 2)})


def test_of_a_line_too_long_to_be_read_the_beginning_is_kept_without_half_a_key() -> None:
    head = f'{{"text":"{"z" * 50}pw\\"with\\\\quo'.encode()  # cut in the middle of it
    told = json.loads(written_raw(WHO, "from_extension", head, 5_000_000, 0, 0, SECRETS))
    assert told["cut"] == 5_000_000 and told["raw"].endswith("z" * 50)


async def test_a_reader_that_does_not_read_costs_lines_but_never_time(tmp_path: Path, found: Found) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    told: list[str] = []
    trace = Trace.open(pipe, SECRETS, told.append)
    frame = json.dumps({"type": "event", "text": "t" * 100_000}).encode()
    sent = 400
    received = bytearray()
    async with asyncio.timeout(20), trace.writing():
        tap = trace.tap(found)
        tap.started(7)
        for _ in range(sent):
            tap.sent(frame)  # 40 MB, of which a pipe takes 64 KB
        while b'"type":"lost"' not in received:
            await asyncio.sleep(0)
            try:
                received += os.read(reader, 1024 * 1024)
            except BlockingIOError:
                pass
    lines = [json.loads(line) for line in received.split(b"\n")[:-1]]
    frames = [line for line in lines if line["direction"] == "to_extension"]
    [lost] = [line["frame"]["lines"] for line in lines if line["frame"].get("type") == "lost"]
    assert lost > 100 and lost + len(frames) == sent and told == []
    os.close(reader)


async def test_a_disk_that_is_full_is_told_once_and_ends_the_trace_alone(found: Found) -> None:
    told: list[str] = []
    failed = asyncio.Event()

    def tell(message: str) -> None:
        told.append(message)
        failed.set()

    trace = Trace.open(Path("/dev/full"), SECRETS, tell)
    async with asyncio.timeout(20), trace.writing():
        tap = trace.tap(found)
        tap.sent(b"{}")
        await failed.wait()
        for _ in range(3):
            tap.received(b"{}")
    assert told == ["the trace /dev/full ends here: No space left on device"]


async def test_what_waits_is_written_at_the_end_into_a_file_for_its_owner_alone(tmp_path: Path, found: Found) -> None:
    path = tmp_path / "trace.jsonl"
    before = '{"time":"2026-01-01T00:00:00Z","direction":"lifecycle","frame":{}}'
    path.write_text(f"{before}\n")
    path.chmod(0o644)
    trace = Trace.open(path, SECRETS, print)
    async with trace.writing():
        tap = trace.tap(found)
        for number in range(1000):
            tap.received(b'{"n":%d}' % number)
        tap.skipped(TooLong(b'{"type":"x', 5_000_000))
    first, *lines = path.read_text().splitlines()
    assert first == before and path.stat().st_mode & 0o777 == 0o600
    assert [json.loads(line)["frame"] for line in lines[:-1]] == [{"n": number} for number in range(1000)]
    assert json.loads(lines[-1])["cut"] == 5_000_000


def test_a_file_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    bad = {tmp_path: "directory", tmp_path / "no" / "such": "No such", tmp_path / "pipe": "nobody reads"}
    for path, why in bad.items():
        with pytest.raises(UsageError, match=why) as caught:
            Trace.open(path, SECRETS, print)
        assert caught.value.hint


def test_a_file_that_holds_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n")
    notes.chmod(0o644)
    with pytest.raises(UsageError, match="something else than a trace"):
        Trace.open(notes, SECRETS, print)
    assert notes.read_text() == "mine\n" and notes.stat().st_mode & 0o777 == 0o644


async def test_one_that_nobody_watches_has_a_plain_channel(tmp_path: Path) -> None:
    async with asyncio.timeout(20), started(Spec(("/bin/cat",), tmp_path, dict(os.environ))) as child:
        assert type(child.channel) is Channel  # what is never called costs nothing


class Watching:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.listened: list[bytes] = []
        self.ended_ = asyncio.Event()

    def started(self, pid: int) -> None:
        self.seen.append(("started", pid))

    def sent(self, line: bytes) -> None:
        self.seen.append(("sent", line))

    def received(self, line: bytes) -> None:
        self.seen.append(("received", line))

    def skipped(self, line: TooLong) -> None:
        self.seen.append(("skipped", line.size))

    def exited(self, exit_: Any, lost: int) -> None:
        self.seen.append(("exited", exit_.code, lost))

    # As a listener of the channel

    def line(self, line: bytes) -> None:
        self.listened.append(line)

    def overlong(self, line: TooLong) -> None:
        self.listened.append(b"long")

    def ended(self) -> None:
        self.ended_.set()

    def broken(self) -> None: ...

    def stalled(self) -> None: ...


async def test_a_tap_sees_what_passes_and_what_does_not_pass_it_does_not_see(tmp_path: Path) -> None:
    tap = Watching()
    async with asyncio.timeout(20), started(Spec(("/bin/cat",), tmp_path, dict(os.environ), tap=tap)) as child:
        child.channel.listen(tap)
        child.channel.send(b"question")
        child.channel.post(b"event")
        child.channel.post(b"x" * 5_000_000)  # no line may be that long
        await child.channel.finish()
        child.channel.post(b"too late")
        await tap.ended_.wait()
        await child.exited()
    lines = [("sent", b"question"), ("sent", b"event"), ("received", b"question"), ("received", b"event")]
    assert tap.seen[0] == ("started", child.pid) and ("exited", 0, 1) in tap.seen
    assert sorted(one for one in tap.seen if one[0] in ("sent", "received")) == sorted(lines)
    assert len(tap.seen) == 6
    assert tap.listened == [b"question", b"event"]


def test_secrets_of_the_environment_are_those_that_extensions_do_not_get() -> None:
    ambient = {"GITHUB_TOKEN": "abc", "HOME": "/root", "URL": "https://u:pw@host/", "HILT_RPC_TOKEN": "t", "LANG": "C"}
    assert set(secrets_of(ambient)) == {"abc", "https://u:pw@host/", "t"}


def test_a_line_of_a_trace_can_be_read_again() -> None:
    from hilt.extensions.trace_line import Traced

    told = written(WHO, "to_extension", b'{"type":"x"}', 0, 0, SECRETS)
    assert msgspec.json.decode(told, type=Traced).frame == {"type": "x"}
