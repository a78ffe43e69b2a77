import asyncio
import os
import stat
import time
from pathlib import Path

import pytest

from hilt.errors import ToolError
from hilt.model.contributions import Effect, Invocation
from hilt.tools import builtin_tools
from hilt.tools.background import Wanted
from hilt.tools.files import replace, survey
from hilt.tools.shell import Shell
from hilt.tools.workspace import Workspace
from tools.kit import Bench, until


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def leftovers(folder: Path) -> list[Path]:
    return list(folder.rglob(".hilt-*"))


async def test_a_new_file_is_created_with_its_folders(bench: Bench) -> None:
    output = await bench.call("write", path="a/b/new.txt", content="one\ntwo")
    target = bench.root / "a" / "b" / "new.txt"
    assert target.read_text() == "one\ntwo"
    assert output.details["created"] is True
    assert output.details["path"] == str(target)
    assert bench.remembered[0] == ("call-1", target, None)
    assert leftovers(bench.root) == []


async def test_the_answer_says_created_or_replaced_with_lines_and_bytes(bench: Bench) -> None:
    assert await bench.text("write", path="f", content="é\n") == f"Created {bench.root}/f (1 line, 3 bytes)"
    assert await bench.text("write", path="f", content="a\nb") == f"Replaced {bench.root}/f (2 lines, 3 bytes)"
    assert "Unchanged" in await bench.text("write", path="f", content="a\nb")
    assert len(bench.remembered) == 2


async def test_a_new_file_has_the_usual_mode_less_the_umask(bench: Bench) -> None:
    before = os.umask(0o027)
    try:
        await bench.call("write", path="new", content="")
    finally:
        os.umask(before)
    assert stat.S_IMODE((bench.root / "new").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o666])
async def test_a_replaced_file_keeps_its_mode(bench: Bench, mode: int) -> None:
    (bench.root / "f").write_text("old")
    (bench.root / "f").chmod(mode)
    await bench.call("write", path="f", content="new")
    assert stat.S_IMODE((bench.root / "f").stat().st_mode) == mode


async def test_a_link_stays_a_link_and_its_target_is_written(bench: Bench) -> None:
    (bench.root / "real").mkdir()
    (bench.root / "real" / "target").write_text("old")
    (bench.root / "link").symlink_to("real/target")
    (bench.root / "dangling").symlink_to("real/made")
    await bench.call("write", path="link", content="new")
    await bench.call("write", path="dangling", content="made")
    assert (bench.root / "link").is_symlink()
    assert (bench.root / "real" / "target").read_text() == "new"
    assert (bench.root / "dangling").is_symlink()
    assert (bench.root / "real" / "made").read_text() == "made"
    assert bench.remembered[0] == ("call-1", bench.root / "real" / "target", b"old")


async def test_readers_see_the_old_file_until_the_new_one_is_whole(bench: Bench) -> None:
    (bench.root / "f").write_text("old")
    with (bench.root / "f").open() as held:
        await bench.call("write", path="f", content="new")
        assert held.read() == "old"


async def test_directories_pipes_and_devices_are_refused(bench: Bench) -> None:
    os.mkfifo(bench.root / "pipe")
    (bench.root / "dir").mkdir()
    async with asyncio.timeout(5):
        assert "directory" in await bench.refusal("write", path="dir", content="x")
        assert "directory" in await bench.refusal("write", path="nothing/", content="x")
        assert "named pipe" in await bench.refusal("write", path="pipe", content="x")
        assert "device" in await bench.refusal("write", path="/dev/null", content="x")
    assert stat.S_ISFIFO((bench.root / "pipe").stat().st_mode)
    assert bench.remembered == []


async def test_a_file_in_the_way_of_a_folder_is_explained(bench: Bench) -> None:
    (bench.root / "file").write_text("x")
    assert "a file, not a directory" in await bench.refusal("write", path="file/below", content="x")


async def test_unpaired_surrogates_are_written_as_replacement_characters_and_said(bench: Bench) -> None:
    text = await bench.text("write", path="f", content="a\ud83db")
    assert (bench.root / "f").read_text() == "a\ufffdb"
    assert "1 unpaired surrogate" in text


async def test_the_preview_is_the_whole_unified_diff_and_changes_nothing(bench: Bench) -> None:
    (bench.root / "f").write_text("".join(f"{n}\n" for n in range(20)))
    content = "".join(f"{n}\n" if n != 10 else "ten\n" for n in range(20)) + "end"
    diff = await bench.preview("write", path="f", content=content)
    assert diff == (
        f"--- {bench.root}/f\n+++ {bench.root}/f\n@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
        "@@ -18,3 +18,4 @@\n 17\n 18\n 19\n+end\n\\ No newline at end of file"
    )
    assert (bench.root / "f").read_text().startswith("0\n1\n")
    assert bench.remembered == []


async def test_the_preview_of_a_new_file_shows_all_of_it(bench: Bench) -> None:
    content = "".join(f"line {n}\n" for n in range(3_000))
    diff = await bench.preview("write", path="new", content=content)
    assert diff.startswith("--- /dev/null\n")
    assert diff.count("\n+line") == 3_000


async def test_the_diff_in_the_details_is_short(bench: Bench) -> None:
    output = await bench.call("write", path="new", content="".join(f"line {n}\n" for n in range(3_000)))
    assert output.details["diff"].count("\n") <= 200
    assert output.details["diff"].endswith("more lines]")


async def test_replacing_a_binary_or_huge_file_still_has_a_preview(bench: Bench) -> None:
    (bench.root / "bin").write_bytes(b"a\0b")
    with (bench.root / "huge").open("wb") as file:
        file.truncate(1 << 34)
    assert "binary, 3 bytes" in await bench.preview("write", path="bin", content="text\n")
    async with asyncio.timeout(5):
        assert f"{1 << 34} bytes, all replaced" in await bench.preview("write", path="huge", content="text\n")


async def test_a_refusal_to_remember_stops_the_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def refuse(_call_id: str, _path: Path) -> None:
        raise ToolError("cannot keep the old content")

    workspace = Workspace(bench.root, bench.workspace.jail, bench.workspace.outputs, refuse)
    write = next(tool for tool in builtin_tools(workspace, Shell()) if tool.name == "write")
    (bench.root / "f").write_text("old")
    with pytest.raises(ToolError, match="cannot keep"):
        await write.invoke(Invocation("c", {"path": "f", "content": "new"}, bench._show))
    assert (bench.root / "f").read_text() == "old"


def test_a_change_made_meanwhile_by_something_else_is_not_overwritten(bench: Bench) -> None:
    (bench.root / "f").write_text("old")
    target = survey(bench.workspace, "f", 100)
    (bench.root / "f").write_text("theirs!")
    with pytest.raises(ToolError, match="changed by something else"):
        replace(target, b"mine", Wanted())
    assert (bench.root / "f").read_text() == "theirs!"


def test_work_whose_caller_is_gone_changes_nothing_and_leaves_nothing(bench: Bench) -> None:
    (bench.root / "f").write_text("old")
    gone = Wanted()
    gone.withdraw()
    for data in (b"new", b""):
        with pytest.raises(ToolError, match="cancelled"):
            replace(survey(bench.workspace, "f", 100), data, gone)
    assert (bench.root / "f").read_text() == "old"
    assert leftovers(bench.root) == []


async def test_a_cancelled_write_leaves_the_old_file_or_the_new_one(bench: Bench) -> None:
    (bench.root / "f").write_text("old")
    content = "new" * 10_000_000
    writing = asyncio.create_task(bench.call("write", path="f", content=content))
    await until(lambda: leftovers(bench.root) or writing.done())
    writing.cancel()
    await asyncio.wait([writing], timeout=2)
    assert writing.done()
    await until(lambda: not leftovers(bench.root))
    assert (bench.root / "f").stat().st_size in (3, len(content))


async def test_what_a_killed_write_left_behind_is_cleared_after_an_hour(bench: Bench) -> None:
    old, young = bench.root / f".hilt-{'0a' * 8}.tmp", bench.root / f".hilt-{'0b' * 8}.tmp"
    others = [
        bench.root / name for name in (".hilt-0a.tmp", f".hilt-{'0A' * 8}.tmp", f".hilt-{'0c' * 8}.tmp~", "x.tmp")
    ]
    for file in (old, young, *others):
        file.write_text("half")
        os.utime(file, (time.time() - 3_700,) * 2)
    os.utime(young, (time.time() - 3_500,) * 2)
    folder, link = bench.root / f".hilt-{'0d' * 8}.tmp", bench.root / f".hilt-{'0e' * 8}.tmp"
    folder.mkdir()
    link.symlink_to("x.tmp")
    for path in (folder, link):
        os.utime(path, (0, 0), follow_symlinks=False)
    await bench.call("write", path="f", content="x")
    assert not old.exists()
    assert all(path.exists() for path in (young, *others, folder))
    assert link.is_symlink()
    young.unlink()
    old.write_text("half")
    os.utime(old, (0, 0))
    await bench.call("edit", path="f", edits=[{"oldText": "x", "newText": "y"}])
    assert not old.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
async def test_leftovers_of_other_users_stay(bench: Bench) -> None:
    theirs = bench.root / f".hilt-{'0a' * 8}.tmp"
    theirs.touch()
    os.chown(theirs, 12345, -1)
    os.utime(theirs, (0, 0))
    await bench.call("write", path="f", content="x")
    assert theirs.exists()


async def test_the_jail_holds_for_writing(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "out").mkdir()
    (bench.root / "link").symlink_to(tmp_path / "secret")
    (bench.root / "dir").symlink_to(tmp_path / "out")
    bench.workspace.jail.on = True
    for path in ("../secret", "link", "dir/new", str(tmp_path / "fresh" / "x")):
        assert "jailed: path" in await bench.refusal("write", path=path, content="x")
    await bench.call("write", path="sub/inside", content="x")
    assert (tmp_path / "secret").read_text() == "s"
    assert list((tmp_path / "out").iterdir()) == []
    assert not (tmp_path / "fresh").exists()


def test_a_folder_swapped_for_a_link_after_the_check_does_not_lead_out(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (bench.root / "dir").mkdir()
    bench.workspace.jail.on = True
    target = survey(bench.workspace, "dir/f", 100)
    (bench.root / "dir").rmdir()
    (bench.root / "dir").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        replace(target, b"x", Wanted())
    assert list(outside.iterdir()) == []


def test_write_and_edit_are_known_to_write(bench: Bench) -> None:
    for name in ("write", "edit"):
        assert bench.tools[name].effect is Effect.WRITE
        assert not bench.tools[name].parallel
        assert bench.tools[name].schema["additionalProperties"] is False
