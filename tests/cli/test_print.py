"""`hilt -p`: the answer on stdout, everything else on stderr, and an exit code that tells."""

import asyncio
import json
from pathlib import Path
from stat import S_IMODE

from support.agent import calls, says
from support.api_server import ApiServer, Reply
from support.chat_server import PROVIDER, answers, asks_for
from support.hilt_process import Ended, Hilt


async def run(hilt: Hilt, *arguments: str, env: dict[str, str] | None = None) -> Ended:
    """Beside the server of the same test."""
    return await asyncio.to_thread(lambda: hilt.run(*arguments, env=env))


def test_a_turn_with_tools_prints_only_its_last_words_and_keeps_a_private_session(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    first = {
        "content": [
            {"type": "text", "text": "let me write"},
            {"type": "tool_call", "name": "write", "args": {"path": "note.txt", "content": "hello\n"}},
        ]
    }
    second = calls(("bash", {"command": "cat note.txt; seq 30"}), expect={"role": "tool"})
    last = {
        "content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "all **done**"}],
        "expect": {"role": "tool", "contains": "hello"},
    }
    done = hilt.run("-p", "make", "a", "note", *hilt.script(first, second, last))
    assert (done.code, done.out) == (0, "all **done**\n")
    assert (hilt.project / "note.txt").read_text() == "hello\n"
    for seen in ("let me write", "→ write note.txt", "→ bash cat note.txt; seq 30", "more lines"):
        assert seen in done.err
    assert "all **done**" not in done.err
    assert len(hilt.sessions()) == 1
    assert '"make a note"' in hilt.sessions()[0].read_text()
    for path in (hilt.home, *hilt.home.rglob("*")):
        assert S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_prompt_may_come_through_a_pipe(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    heard = says("heard", expect={"role": "user", "contains": "grüße\nfrom a pipe"})
    done = hilt.run("-p", *hilt.script(heard), stdin="grüße\nfrom a pipe\n")
    assert (done.code, done.out, done.err) == (0, "heard\n", "")


def test_a_turn_that_fails_says_why_on_stderr_and_exits_with_1(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    done = hilt.run("-p", "hi", *hilt.script({"error": "the model is on strike"}))
    assert (done.code, done.out) == (1, "")
    assert "the model is on strike" in done.err
    assert "Traceback" not in done.err


def test_a_turn_of_too_many_steps_ends_with_1_and_names_the_limit(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    step = calls(("bash", {"command": "true"}))
    done = hilt.run("-p", "go", "--max-steps", "2", *hilt.script(step, step, says("never")))
    assert (done.code, done.out) == (1, "")
    assert "max steps (2) exceeded" in done.err and "--max-steps" in done.err


def test_a_session_is_continued_by_flag_by_id_by_path_and_by_picking_it(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    script = hilt.script(says("yes"))
    assert hilt.run("-p", "one", *script).code == 0
    (path,) = hilt.sessions()
    session = json.loads(path.read_text().split("\n")[0])["data"]["id"]
    assert hilt.run("-c", "-p", "two", *script).code == 0
    assert hilt.run("--session", session, "-p", "three", *script).code == 0
    assert hilt.run("--session", session[:6], "-p", "four", *script).code == 0
    assert hilt.run("--session", str(path), "-p", "five", *script).code == 0
    picked = hilt.run("-r", "-p", "six", *script, stdin="1\n")
    assert picked.code == 0 and "one" in picked.err and "pick #" in picked.err
    assert hilt.sessions() == [path]
    shown = json.loads(hilt.run("sessions", "show", session, "--json").out)
    said = [message["content"][0]["text"] for message in shown["messages"] if message["role"] == "user"]
    assert said == ["one", "two", "three", "four", "five", "six"]


def test_what_cannot_be_continued_is_said_in_one_line(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    script = hilt.script(says("yes"))
    first = hilt.run("-c", "-p", "one", *script)
    assert first.code == 0 and "no session of this directory yet" in first.err
    picked = hilt.run("-r", "-p", "two", *script, stdin="7\n")
    assert picked.code == 2 and "'7' is not a number from 1 to 1" in picked.err
    unknown = hilt.run("--session", "nosuch", "-p", "three", *script)
    assert unknown.code == 1 and "no session matches 'nosuch'" in unknown.err and "hint:" in unknown.err
    both = hilt.run("-c", "-r", "-p", "four", *script)
    assert both.code == 2 and "exclude each other" in both.err


def test_a_title_cannot_command_the_terminal_on_which_it_is_listed(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.run("-p", "\x1b]0;owned\x07hello \x1b[2Jthere", *hilt.script(says("yes")))
    for done in (hilt.run("-r", "-p", "x", stdin="\n"), hilt.run("sessions", "list")):
        assert "hello there" in done.out + done.err
        assert "\x1b" not in done.out + done.err


def test_no_session_leaves_nothing_on_disk(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    assert hilt.run("--no-session", "-p", "hi", *hilt.script(says("yes"))).out == "yes\n"
    assert hilt.files() == []


def test_without_a_key_the_demo_answers_and_one_line_says_so(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    done = hilt.run("-p", "run `echo from-the-demo`")
    assert done.code == 0 and done.out
    notices = [line for line in done.err.split("\n") if line.startswith("hilt:")]
    assert len(notices) == 1
    assert "demo" in notices[0] and "hilt login" in notices[0]
    assert "from-the-demo" in done.err


async def test_a_passing_failure_is_announced_and_tried_again(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.home.mkdir(mode=0o700)
    (hilt.home / "config.toml").write_text("[retry]\nbase_delay = 0.01\n")
    async with ApiServer(Reply.json(503, {"error": {"message": "overloaded"}}), answers("at last")) as server:
        done = await run(hilt, "-p", "hi", *PROVIDER, "--base-url", server.url)
    assert (done.code, done.out) == (0, "at last\n")
    assert "retry 2 of 6 in 0.0 s" in done.err and "overloaded" in done.err


def test_a_run_that_may_not_ask_refuses_what_writes_or_executes_and_tells_the_model(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    (hilt.project / "a.txt").write_text("readable\n")
    hilt.home.mkdir(mode=0o700)
    turns = (
        calls(("bash", {"command": "touch ran"})),
        calls(("write", {"path": "b.txt", "content": "x"}), expect={"role": "tool", "contains": "permission"}),
        calls(("read", {"path": "a.txt"})),
        says("I see", expect={"role": "tool", "contains": "readable"}),
    )
    for flags, config, written in (
        (["--permissions", "ask"], "", False),
        (["--no-yolo"], "", False),
        (["--permissions", "accept-edits"], "", True),
        ([], 'permissions = "ask"\n', False),
    ):
        (hilt.home / "config.toml").write_text(config)
        done = hilt.run("-p", "go", *flags, *hilt.script(*turns))
        assert (done.code, done.out) == (0, "I see\n"), done.err
        assert "permission denied" in done.err
        assert not (hilt.project / "ran").exists()
        assert (hilt.project / "b.txt").exists() == written
        (hilt.project / "b.txt").unlink(missing_ok=True)


async def test_flags_and_files_reach_the_model(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    for path, text in {
        hilt.home / "AGENTS.md": "Rule of the house.",
        hilt.home / "SYSTEM.md": "You are a teapot.",
        hilt.home / "skills" / "brew" / "SKILL.md": "---\nname: brew\ndescription: how to make tea\n---\nBoil.",
        elsewhere / "AGENTS.md": "Rule of the project.",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    common = ("-p", "hi", *PROVIDER, "--cwd", str(elsewhere))
    async with ApiServer(answers("ok")) as server:
        at = ("--base-url", server.url)
        await run(hilt, *common, *at, "--append-system-prompt", "First.", "--append-system-prompt", "Second.")
        await run(hilt, *common, *at, "--system-prompt", "You are a kettle.", "--tools", "read, bash", "--no-skill")
        quiet = await run(hilt, *common, *at, "--no-tools")
        odd = await run(hilt, *common, *at, "--tools", "read,teleport")
        bodies = [seen.json for seen in server.requests]
    systems = [next(m["content"] for m in body["messages"] if m["role"] == "system") for body in bodies]
    tools = [[tool["function"]["name"] for tool in body.get("tools", [])] for body in bodies]
    assert systems[0].startswith("You are a teapot.")
    parts = ["First.", "Second.", "Rule of the house.", "Rule of the project.", "brew", f"directory: {elsewhere}"]
    positions = [systems[0].index(part) for part in parts]
    assert positions == sorted(positions)
    assert "how to make tea" in systems[0]
    assert tools[0] == ["read", "write", "edit", "bash", "skill"]
    assert systems[1].startswith("You are a kettle.") and "brew" not in systems[1] and "teapot" not in systems[1]
    assert tools[1] == ["read", "bash"]
    assert quiet.code == 0 and tools[2] == []
    assert odd.code == 0 and tools[3] == ["read"] and "no built-in tool is called teleport" in odd.err


def test_the_jail_keeps_file_tools_in_the_working_directory(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    (tmp_path / "secret.txt").write_text("forbidden fruit\n")
    turns = (
        calls(("read", {"path": "../secret.txt"})),
        calls(("write", {"path": str(tmp_path / "new.txt"), "content": "x"})),
        says("stuck"),
    )
    done = hilt.run("-p", "go", "--jail", *hilt.script(*turns))
    assert done.out == "stuck\n"
    assert "forbidden fruit" not in done.err and not (tmp_path / "new.txt").exists()
    assert "forbidden fruit\n" in hilt.run("-p", "go", *hilt.script(*turns)).err
    assert (tmp_path / "new.txt").exists()


async def test_a_key_never_shows_wherever_it_comes_from_and_whoever_prints_it(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    keys = {"flag": "key-from-flag-1234567", "env": "key-from-env-12345678", "file": "key-from-file-1234567"}
    hilt.home.mkdir(mode=0o700)
    (hilt.home / "auth.json").write_text(json.dumps({"anthropic": {"api_key": keys["file"]}}))
    (hilt.home / "auth.json").chmod(0o600)
    leak = "echo leaks: " + " ".join(keys.values())
    env = {"OPENAI_API_KEY": keys["env"]}
    printed = ""
    for face in ("-p", "--json"):
        async with ApiServer(asks_for("bash", command=leak), answers(leak)) as server:
            flags = (*PROVIDER, "--base-url", server.url, "--api-key", keys["flag"])
            done = await run(hilt, face, f"say {keys['flag']}", *flags, env=env)
            assert done.code == 0 and "leaks: " in done.out
            assert server.requests[0].headers["authorization"] == f"Bearer {keys['flag']}"
        printed += done.out + done.err
    (hilt.home / "auth.json").unlink()
    kept = "".join(path.read_text() for path in hilt.files())
    assert "leaks: " in kept and "leaks: " in printed
    for key in keys.values():
        assert key not in printed
        assert key not in kept


def test_a_key_in_a_commands_whole_output_is_blanked_in_the_file_that_is_kept(tmp_path: Path) -> None:
    key = "sk-test-0123456789abcdef"
    hilt = Hilt(tmp_path)
    flags = hilt.script(calls(("bash", {"command": f"echo {key}; seq 1 30000"})), says("done"))
    done = hilt.run("--json", "go", "--api-key", key, *flags)
    (result,) = [event["content"][0]["text"] for event in done.events if event["type"] == "tool_result"]
    kept = Path(result.rpartition("(full output: ")[2].partition(")")[0])
    assert kept.read_text().count("\n") == 30001 and key not in kept.read_text()
