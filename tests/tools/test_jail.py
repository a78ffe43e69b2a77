from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.tools.leaving import leaves
from hilt.tools.shell import Shell
from support.properties import patient
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
        "cat /etc/hosts",
        "cat '/etc/hosts'",
        'cat "/etc/hosts"',
        "cat < /etc/hosts",
        "while read x; do echo $x; done </etc/hosts",
        "cp /etc/hosts .",
        "dd if=/dev/zero of=file count=1",
        "ls /",
        "ls ..",
        "cat ../secret",
        "cat sub/../../secret",
        "cat not-there/../../secret",
        "cd sub && cat ../../secret",
        "cat ~/.ssh/id_rsa",
        "ls ~",
        "ls ~root",
        "cat $HOME/.netrc",
        'cat "${HOME}/.netrc"',
        "cat '$HOME/.netrc'",
        "grep -r x --include=*.py /usr/lib",
        "tool --config=/etc/hosts",
        "tool --config=../x",
        "tool --config=~/x",
        "tool --config=$HOME/x",
        "tool name=/etc/hosts",
        "git -C/etc status",
        "tool --output=/tmp/not-there",
        "tool /not-there",
        "cat /etc/$NAME",
        "cat /usr/lib/$NAME/x",
        "cat ../$NAME",
        "echo `cat /etc/hosts`",
        "echo $(cat /etc/hosts)",
        "diff <(cat /etc/hosts) x",
        "ls && cat /etc/hosts",
        "ls | /usr/bin/env python3 /etc/hosts",
        "env /bin/cat /etc/hosts",
        ". /etc/profile",
        "[ -f /etc/hosts ]",
        "for f in /etc/*; do echo; done",
        "bash -lc 'cat /etc/hosts'",
        "sh -c 'cat $1' x /etc/hosts",
        "eval 'cat /etc/hosts'",
        "sh <<EOF\ncd /\nEOF",
        "curl file:///etc/hosts",
        "ls > /dev/null/../x",
        "cat /dev/stdin /dev/sda",
        "# note\ncat /etc/hosts",
        "ls # note\ncat /etc/hosts",
        "cat '#x' /etc/hosts",
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
        "rm -rf build",
        "dd if=input of=file count=1",
        "git commit -m 'a > b'",
        "a=b",
        "",
        "<<EOF cat\ntext\nEOF",
        "python3 -m x",
        "/usr/bin/env python3 x.py",
        "/usr/bin/env /usr/bin/python3 x.py",
        "nohup /bin/ls",
        "/bin/ls | /usr/bin/sort && (/bin/ls)",
        "X=1 /bin/ls",
        "PATH=/usr/bin:$PATH make",
        "export PATH=/usr/bin:$PATH",
        "grep -r foo .",
        "cat sub/../x",
        "cat ./sub/../x",
        "git log main..other ..other HEAD~1",
        "curl https://example.com/../../etc -o out",
        "git clone ssh://git@example.com/etc/x",
        "pip install --index-url=https://example.com/simple x",
        "sed s/a/b/ f",
        "sed 's/../../' f",
        "sed -e '/foo/d' -e '/^$/d' -e '/a$/p' f",
        "awk '/foo/' f",
        "awk '/foo/ {print $1}' f",
        "awk -F/ '{print $2}' f | cut -d/ -f2 | cut -d / -f 1 | tr / _",
        "tool --match=/x/y",
        "tool /x/y",
        "grep -r '// TODO' .",
        "git commit -m 'see ../../../x for /etc'",
        "echo 'it is at /etc/hosts'",
        "cat < f",
        "cat < /dev/null",
        "cat /dev/stdin > /dev/stderr",
        "tool --log=/dev/stdout < /dev/tty",
        "cat > note <<'EOF'\nit's in /etc/hosts\nls /etc\nEOF\nls",
        "# see /etc/hosts",
        "ls # see /etc/hosts",
        "wc <<< /etc/hosts",
        "cat '\0' ~\0 /\0 \ud800 /\ud800",
    ],
)
def test_ordinary_commands_are_let_through(root: Path, command: str) -> None:
    assert leaves(command, root, root) == ""


def test_a_link_that_leads_out_does_not_count_as_inside(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    assert leaves("cd link && ls", root, root)


def test_absolute_paths_below_the_folder_are_inside(root: Path) -> None:
    (root / "tool").symlink_to("/bin/ls")
    assert leaves(f"cat {root} {root}/x --log={root}/y {root}/tool < {root}/z", root, root) == ""
    assert leaves(f"cat {root}x", root, root)
    assert leaves(f"cat {root}/../x", root, root)


def test_a_link_to_the_folder_is_the_folder(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    assert leaves(f"cat {tmp_path}/alias/x ../alias/y", root, root) == ""


WORDS = ["cat", "cd", "sh", "-c", "eval", "/etc", "..", "~", "$HOME", "'", '"', "`", "$(", ")", "<<E", "#", "\n", ">"]


@patient
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=4)).map(" ".join))
def test_no_command_at_all_makes_it_fail(command: str) -> None:
    assert isinstance(leaves(command, Path("/usr"), Path("/usr")), str)


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
