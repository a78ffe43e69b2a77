"""`hilt sessions`: every verb, for people and as JSON."""

import json
from pathlib import Path
from typing import Any

import pexpect

from support.agent import calls, says
from support.hilt_process import DEADLINE, Hilt


def talked(tmp_path: Path, *prompts: str) -> tuple[Hilt, str]:
    """A user with one session, and its id."""
    hilt = Hilt(tmp_path)
    for prompt in prompts:
        hilt.run("-c", "-p", prompt, *hilt.script(says(f"answer to {prompt}")))
    return hilt, json.loads(hilt.sessions()[0].read_text().split("\n")[0])["data"]["id"]


def as_json(hilt: Hilt, *arguments: str) -> Any:
    done = hilt.run("sessions", *arguments, "--json")
    assert (done.code, done.err) == (0, ""), done
    return json.loads(done.out)


def as_text(hilt: Hilt, *arguments: str) -> str:
    done = hilt.run("sessions", *arguments)
    assert (done.code, done.err) == (0, ""), done
    return done.out


def test_sessions_are_listed_newest_first_with_what_tells_them_apart(tmp_path: Path) -> None:
    hilt, first = talked(tmp_path, "the first")
    hilt.run("-p", "the second", "--cwd", str(tmp_path), *hilt.script(says("x")))
    listed = as_json(hilt, "list")
    assert [session["title"] for session in listed] == ["the second", "the first"]
    assert {"id", "title", "cwd", "updated"} <= set(listed[0])
    assert listed[1]["id"] == first and listed[1]["cwd"] == str(hilt.project)
    here = as_text(hilt, "list", "--here")
    assert first[:8] in here and "the second" not in here
    assert "(~/project)" in as_text(hilt, "list")


def test_an_empty_list_is_said_in_words_and_as_an_empty_list(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    assert as_json(hilt, "list") == []
    assert as_text(hilt, "list") == "no sessions yet\n"


def test_a_conversation_is_shown_with_its_tools(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path)
    hilt.run("-p", "look", *hilt.script(calls(("bash", {"command": "echo \x1b[2Jseen"})), says("done")))
    session = as_json(hilt, "list")[0]["id"]
    text = as_text(hilt, "show", session[:8])
    assert text.startswith("# look\n\n> look\n\n→ bash ") and text.endswith("\n\ndone\n")
    assert "✓ bash: " in text and "\x1b" not in text
    shown = as_json(hilt, "show", session)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert shown["id"] == session and shown["usage"]["input"] == 0


def test_a_session_is_renamed_forked_and_shown_as_a_tree(tmp_path: Path) -> None:
    hilt, session = talked(tmp_path, "one", "two")
    assert as_text(hilt, "rename", session, "a", "better", "name") == f"{session[:8]} is now called: a better name\n"
    assert as_json(hilt, "rename", session, "best")["title"] == "best"
    tree = as_json(hilt, "tree", session)
    assert [node["preview"] for node in tree["tree"]] == ["one", "answer to one", "two", "answer to two"]
    assert as_text(hilt, "tree", session).count("●") == 4
    fork = as_json(hilt, "fork", session, "--at", tree["tree"][1]["id"])
    assert fork["id"] != session
    assert [message["role"] for message in as_json(hilt, "show", fork["id"])["messages"]] == ["user", "assistant"]
    assert "forked as" in as_text(hilt, "fork", session)
    assert len(as_json(hilt, "list")) == 3
    nowhere = hilt.run("sessions", "fork", session, "--at", "nowhere")
    assert nowhere.code == 1 and "nowhere" in nowhere.err


def test_an_exported_session_says_nothing_of_where_it_was_made_and_can_be_imported(tmp_path: Path) -> None:
    hilt, session = talked(tmp_path, "to go")
    target = tmp_path / "out.hiltsession"
    assert as_json(hilt, "export", session, str(target)) == {"path": str(target)}
    assert str(hilt.project) not in target.read_text()
    again = hilt.run("sessions", "export", session, str(target))
    assert again.code == 1 and "exists already" in again.err
    assert as_text(hilt, "export", session, str(target), "--force") == f"exported to {target}\n"
    folder = tmp_path / "folder"
    folder.mkdir()
    assert Path(as_json(hilt, "export", session, str(folder))["path"]).parent == folder
    imported = as_json(hilt, "import", str(target))
    assert imported["id"] != session and imported["title"] == "to go"
    assert "imported as" in as_text(hilt, "import", str(target))
    assert len(hilt.sessions()) == 3
    missing = hilt.run("sessions", "import", str(tmp_path / "nothing"))
    assert missing.code == 1 and "nothing" in missing.err and "Traceback" not in missing.err


def test_nothing_is_deleted_without_a_yes(tmp_path: Path) -> None:
    hilt, session = talked(tmp_path, "precious")
    refused = hilt.run("sessions", "delete", session)
    assert refused.code == 2 and "--yes" in refused.err
    for answer, left in (("n", 1), ("y", 0)):
        terminal = pexpect.spawn(
            str(hilt.command()[0]),
            ["-m", "hilt", "sessions", "delete", session],
            env=hilt.environment,
            cwd=str(hilt.project),
            timeout=DEADLINE,
            encoding="utf-8",
        )
        terminal.expect("precious.*y/N")
        terminal.sendline(answer)
        terminal.expect(pexpect.EOF)
        terminal.wait()
        assert terminal.exitstatus == 0
        assert len(hilt.sessions()) == left


def test_a_session_is_deleted_by_prefix_with_yes_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    hilt, session = talked(tmp_path, "gone")
    deleted = as_json(hilt, "delete", session[:8], "--yes")
    assert deleted["id"] == session and deleted["deleted"] is True
    assert hilt.sessions() == []
    for verb in ("show", "tree", "fork", "delete", "export"):
        unknown = hilt.run("sessions", verb, session, *(["--yes"] if verb == "delete" else []))
        assert unknown.code == 1 and session in unknown.err and "hint: " in unknown.err
