from pathlib import Path

import pytest

from hilt.tools.leaving import leaves
from hilt.tools.shell import Shell
from tools.kit import Bench


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project" / "sub").mkdir(parents=True)
    return tmp_path / "project"


@pytest.mark.parametrize(
    "command",
    [
        "sudo apt-get install foo",
        "rm -rf /",
        "cd /etc && ls",
        "cd .. && rm foo",
        "cd",
        "cd ~",
        "cd ~/x",
        "cd $HOME",
        'cd "${HOME}/x"',
        "cd sub && cd ../..",
        "(cd sub; ls) && cd ..",
        "pushd /tmp",
        "ls; su root",
        "true\nsudo ls",
        "FOO=1 sudo ls",
        "if true; then sudo ls; fi",
        "/usr/bin/sudo ls",
        "echo x > /etc/passwd",
        "echo x >>/tmp/log",
        "echo x 2>/tmp/log",
        "echo x &>/tmp/log",
        "echo x >| ../other",
        "echo x | tee /tmp/x",
        "rm -rf ~",
        "rm -rf $HOME",
        "rm -rf /*",
        "rm -r -f -- ../other",
        "chmod -R 777 /",
        "mv /etc/hosts .",
        "cp secret /tmp/x",
        "mkfs.ext4 /dev/sda1",
        "dd if=/dev/zero of=/dev/sda",
        "sh -c 'cd /; ls'",
        "bash -c \"bash -c 'sudo ls'\"",
        "cat <<EOF\nit's\nEOF\nsudo ls",
    ],
)
def test_commands_that_plainly_leave_are_told_apart(root: Path, command: str) -> None:
    assert leaves(command, root, root)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "go test ./...",
        "cd subdir && ls",
        "cd sub && cd ..",
        "(cd sub && ls); ls",
        "cd -",
        "cd $SOMEWHERE",
        "echo sudo",
        "echo 'cd /etc'",
        "grep -r 'rm -rf /' .",
        "make 2>&1 | tee log",
        "make > /dev/null 2>&1",
        "echo x > out.txt",
        "echo x >&2",
        "cat < /etc/hosts",
        "cat /etc/hosts",
        "cp /etc/hosts .",
        "rm -rf build",
        "dd if=/dev/zero of=file count=1",
        "git commit -m 'a > b'",
        "a=b",
        "",
        "<<EOF cat\ntext\nEOF",
    ],
)
def test_ordinary_commands_are_let_through(root: Path, command: str) -> None:
    assert leaves(command, root, root) == ""


def test_a_link_that_leads_out_does_not_count_as_inside(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    assert leaves("cd link && ls", root, root)


async def test_a_jailed_command_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with Shell() as shell:
        bench = Bench(tmp_path, shell)
        bench.workspace.jail.on = True
        message = await bench.refusal("bash", command="cd /etc && ls")
        assert message.startswith('jailed: "cd /etc" leaves the folder')
        assert "/unjail" in message
        assert "not a security boundary" in message
        assert "[exit 0]" in await bench.text("bash", command="ls")
        bench.workspace.jail.on = False
        assert "[exit 0]" in await bench.text("bash", command="cd / && ls")
