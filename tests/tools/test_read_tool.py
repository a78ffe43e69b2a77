import asyncio
import contextlib
import os
import socket
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.errors import ToolError
from hilt.model.contributions import Effect
from hilt.tools.files import opened
from hilt.tools.lines import Lines
from tools.kit import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_offset_and_limit_choose_lines_without_numbers(bench: Bench) -> None:
    (bench.root / "five").write_text("1\n2\n3\n4\n5\n")
    assert await bench.text("read", path="five", offset=2, limit=2) == "2\n3\n"


async def test_a_short_file_is_shown_exactly(bench: Bench) -> None:
    (bench.root / "short").write_bytes("a\r\n\tb\x0c\u2028é\nno end".encode())
    assert await bench.text("read", path="short") == "a\r\n\tb\x0c\u2028é\nno end"


async def test_an_empty_file_is_said_to_be_empty(bench: Bench) -> None:
    (bench.root / "empty").touch()
    assert "empty is empty" in await bench.text("read", path="empty")


async def test_the_window_stops_at_two_thousand_lines_and_names_the_next_offset(bench: Bench) -> None:
    (bench.root / "long").write_text("".join(f"{n}\n" for n in range(1, 5001)))
    output = await bench.call("read", path="long", limit=4000)
    text = await bench.text("read", path="long", limit=4000)
    assert text.splitlines()[1999] == "2000"
    assert text.endswith("... [truncated at 2000 lines, after line 2000 of 5000; continue with offset=2001]")
    assert output.details["next_offset"] == 2001
    assert output.details["total_lines"] == 5000
    assert (await bench.text("read", path="long", offset=4999)) == "4999\n5000\n"


async def test_the_window_stops_at_the_byte_limit_between_lines(bench: Bench) -> None:
    (bench.root / "wide").write_text("".join(f"{n:999}\n" for n in range(200)))
    text = await bench.text("read", path="wide")
    shown, note = text.rsplit("\n", 1)
    assert len(shown.encode()) + 1 == 51_000
    assert "truncated at 51200 bytes" in note
    assert "offset=52]" in note


async def test_windows_in_a_row_give_the_whole_file(bench: Bench) -> None:
    content = "".join(f"{'x' * (n * 37 % 900)}{n}\n" for n in range(700))
    (bench.root / "all").write_text(content)
    seen, offset = "", 1
    while True:
        output = await bench.call("read", path="all", offset=offset)
        text = await bench.text("read", path="all", offset=offset)
        if output.details["next_offset"] is None:
            assert seen + text == content
            return
        seen += text[: text.rindex("... [")]
        offset = output.details["next_offset"]


async def test_an_offset_beyond_the_end_tells_how_many_lines_there_are(bench: Bench) -> None:
    (bench.root / "two").write_text("a\nb")
    assert "has 2 lines" in await bench.refusal("read", path="two", offset=3)
    assert await bench.text("read", path="two", offset=2) == "b"


async def test_a_single_huge_line_is_cut_between_characters_with_a_note(bench: Bench) -> None:
    (bench.root / "line").write_text("é" * 100_000 + "\nnext\n")
    text = await bench.text("read", path="line")
    assert text.startswith("é" * 25_600 + "\n... [line 1 is 200001 bytes long and was cut at 51200]")
    assert "offset=2" in text
    assert "\ufffd" not in text


async def test_invalid_utf8_is_shown_with_replacement_characters_and_said(bench: Bench) -> None:
    (bench.root / "latin").write_bytes(b"caf\xe9\n")
    text = await bench.text("read", path="latin")
    assert text.startswith("caf\ufffd\n... [bytes that are not valid UTF-8")


async def test_invalid_bytes_cannot_push_the_window_over_its_limit(bench: Bench) -> None:
    (bench.root / "bad").write_bytes((b"\xff" * 99 + b"\n") * 500)
    text = await bench.text("read", path="bad")
    assert len(text[: text.index("... [")].encode()) <= 51_200


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
async def test_utf16_and_utf32_text_with_a_mark_is_decoded(bench: Bench, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    (bench.root / "wide").write_bytes(mark + "één\ntwee\n".encode(encoding))
    assert (await bench.text("read", path="wide", offset=2)).startswith("twee\n... [decoded from UTF-")


async def test_a_utf8_mark_is_not_shown(bench: Bench) -> None:
    (bench.root / "marked").write_bytes(b"\xef\xbb\xbfhello\n")
    assert await bench.text("read", path="marked") == "hello\n"


async def test_a_nul_early_in_the_file_means_binary(bench: Bench) -> None:
    (bench.root / "a.out").write_bytes(b"x" * 8_191 + b"\0")
    assert "binary file of 8192 bytes" in await bench.refusal("read", path="a.out")


async def test_a_directory_is_refused_with_its_first_entries(bench: Bench) -> None:
    for n in range(30):
        (bench.root / f"f{n:02}").touch()
    (bench.root / "adir").mkdir()
    message = await bench.refusal("read", path=".")
    assert "ls" in message
    assert "adir/, f00" in message
    assert "f18, …" in message
    assert "f19" not in message


async def test_pipes_sockets_and_devices_are_refused_without_being_opened(bench: Bench) -> None:
    os.mkfifo(bench.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(bench.root / "socket"))
        async with asyncio.timeout(5):
            assert "named pipe" in await bench.refusal("read", path="pipe")
            assert "socket" in await bench.refusal("read", path="socket")
            assert "device" in await bench.refusal("read", path="/dev/zero")
    # Nobody opened the pipe for reading: a writer that does not wait still finds no reader.
    with pytest.raises(OSError, match="No such device"):
        os.open(bench.root / "pipe", os.O_WRONLY | os.O_NONBLOCK)


async def test_a_missing_file_is_answered_with_the_nearest_name(bench: Bench) -> None:
    (bench.root / "src").mkdir()
    (bench.root / "src" / "settings.py").touch()
    assert f"did you mean {bench.root}/src/settings.py?" in await bench.refusal("read", path="src/setings.py")
    assert f"({bench.root} has no scr); did you mean {bench.root}/src?" in await bench.refusal("read", path="scr/x.py")


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "bad\ud800name"])
async def test_impossible_paths_are_refused(bench: Bench, path: str) -> None:
    assert "path" in await bench.refusal("read", path=path)


async def test_a_path_through_a_file_and_a_link_loop_are_explained(bench: Bench) -> None:
    (bench.root / "file").touch()
    (bench.root / "loop").symlink_to("loop")
    assert "not a directory" in await bench.refusal("read", path="file/x")
    assert "circle" in await bench.refusal("read", path="loop")


@pytest.mark.parametrize("args", [{"path": "x", "offset": 0}, {"path": "x", "limit": -1}, {"path": 3}, {}])
async def test_wrong_arguments_are_refused(bench: Bench, args: dict[str, object]) -> None:
    (bench.root / "x").write_text("1\n")
    assert await bench.refusal("read", **args)


async def test_a_whole_number_written_as_a_float_is_accepted(bench: Bench) -> None:
    (bench.root / "x").write_text("1\n2\n")
    assert await bench.text("read", path="x", offset=2.0) == "2\n"


async def test_the_home_folder_is_expanded(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "note").write_text("hi\n")
    assert await bench.text("read", path="~/note") == "hi\n"


async def test_a_link_is_followed(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("far\n")
    (bench.root / "link").symlink_to(tmp_path / "outside")
    assert await bench.text("read", path="link") == "far\n"


async def test_a_huge_file_is_read_in_flat_memory(bench: Bench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.write(b"first\n" * 2_000)
        file.seek(1 << 28)
        file.write(b"\nlast\n")
    tracemalloc.start()
    try:
        async with asyncio.timeout(30):
            assert (await bench.text("read", path="huge", limit=1)) == "first\n"
            assert (await bench.text("read", path="huge", offset=2002)) == "last\n"
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


async def test_the_first_lines_of_a_huge_file_come_without_reading_it_all(bench: Bench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.write(b"first\n" * 2_000)
        file.truncate(1 << 40)  # a terabyte: reading it would take minutes
    async with asyncio.timeout(10):
        output = await bench.call("read", path="huge", limit=1)
    assert output.details["total_lines"] is None


async def test_a_cancelled_read_returns_at_once_and_its_thread_stops(bench: Bench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.write(b"first\n" * 2_000)
        file.truncate(1 << 40)
    reading = asyncio.create_task(bench.call("read", path="huge", offset=5_000_000))
    await asyncio.sleep(0.05)
    start = time.monotonic()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.get_running_loop().shutdown_default_executor()  # waits for the thread
    assert time.monotonic() - start < 5


async def test_the_jail_holds_for_reading(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s\n")
    (bench.root / "inside").write_text("i\n")
    (bench.root / "link").symlink_to(tmp_path / "secret")
    bench.workspace.jail.on = True
    assert await bench.text("read", path="inside") == "i\n"
    expected = f'jailed: path "{tmp_path}/secret" is outside sandbox root "{bench.root}" (use /unjail to disable)'
    for path in ("../secret", str(tmp_path / "secret"), "link"):
        assert await bench.refusal("read", path=path) == expected
    assert "jailed" in await bench.refusal("read", path="/etc/no-such-file")  # not even whether it exists
    assert "jailed" in await bench.refusal("read", path=f"{bench.root}-sibling/x")
    bench.workspace.jail.on = False
    assert await bench.text("read", path="link") == "s\n"


async def test_a_jailed_read_may_open_a_kept_output(bench: Bench) -> None:
    bench.workspace.outputs.mkdir()
    kept = bench.workspace.outputs / "bash-1.log"
    kept.write_text("all of it\n")
    bench.workspace.jail.on = True
    assert await bench.text("read", path=str(kept)) == "all of it\n"


def test_a_link_swapped_after_the_check_does_not_lead_out_of_the_jail(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s\n")
    (bench.root / "inside").write_text("i\n")
    link = bench.root / "link"
    link.symlink_to("inside")
    bench.workspace.jail.on = True

    def permit_then_swap(real: Path) -> None:
        bench.workspace.permit_reading(real)
        link.unlink()
        link.symlink_to(tmp_path / "secret")

    with pytest.raises(ToolError, match="jailed"), opened(link, permit_then_swap):
        pass


def test_a_link_that_keeps_changing_never_shows_what_is_outside(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s\n")
    (bench.root / "inside").write_text("i\n")
    link, other = bench.root / "link", bench.root / "other"
    link.symlink_to("inside")
    bench.workspace.jail.on = True
    done = threading.Event()

    def keep_changing() -> None:
        while not done.is_set():
            for target in ("inside", "../secret"):
                other.symlink_to(target)
                other.replace(link)

    changing = threading.Thread(target=keep_changing)
    changing.start()
    seen = set()
    try:
        for _ in range(2_000):
            with contextlib.suppress(ToolError), opened(link, bench.workspace.permit_reading) as (fd, _status):
                seen.add(os.read(fd, 10))
    finally:
        done.set()
        changing.join(10)
    assert seen == {b"i\n"}


def test_what_was_permitted_is_what_is_read_even_when_the_name_moves(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s\n")
    name = bench.root / "file"
    name.write_text("i\n")
    permits = []

    def permit_then_replace(real: Path) -> None:
        permits.append(real)
        if len(permits) == 2:
            os.replace(tmp_path / "secret", name)

    with opened(name, permit_then_replace) as (fd, _):
        assert os.read(fd, 10) == b"i\n"


def test_read_may_run_beside_others_and_only_reads(bench: Bench) -> None:
    tool = bench.tools["read"]
    assert tool.parallel
    assert tool.effect is Effect.READ
    assert tool.schema["additionalProperties"] is False


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(0, 12), st.integers(1, 40), st.integers(1, 1_000_000))
def test_lines_agree_with_splitting_the_whole(parts: list[bytes], skip: int, cap: int, budget: int) -> None:
    whole = b"".join(part.replace(b"0", b"\n") for part in parts)
    expected = whole.split(b"\n")
    expected = [line + b"\n" for line in expected[:-1]] + ([expected[-1]] if expected[-1] else [])
    lines = Lines(iter([part.replace(b"0", b"\n") for part in parts]))
    lines.skip(skip)
    assert lines.passed == min(skip, len(expected))
    for line in expected[skip : skip + 3]:
        assert lines.more()
        assert lines.take(cap) == (line[:cap], len(line))
    assert lines.more() == (len(expected) > skip + 3)
    assert lines.count_rest(budget) in (len(expected), None)
