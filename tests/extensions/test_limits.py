"""Extensions that take too much: each is stopped and named, and its neighbours go on."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hilt.extensions import supervisor
from hilt.extensions.allowance import Allowance, allowance, processes_now
from hilt.model.events import ExtensionChanged
from hilt.packages.choices import Choices
from hilt.packages.manifest import Limits
from hilt.transport.process import Exit
from support.agent import says
from support.extending import Extended, Made, chaos, extended, tool
from support.hilt_process import Hilt
from support.leftovers import nothing_left
from transport.children import state

GREEDY = """
import json, sys
def say(**frame): print(json.dumps(frame), flush=True)
say(type="hello", name="t", version="1", capabilities=["tools"])
say(type="register_tool", name="t", description="Does it.", schema={"type": "object"})
say(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "tool_call":
        exec(frame["args"]["do"])
        say(type="tool_result", id=frame["id"], content=[{"type": "text", "text": "done"}])
    elif frame["type"] == "shutdown":
        break
"""
NODE = """
const say = (frame) => process.stdout.write(JSON.stringify(frame) + "\\n");
say({type: "hello", name: "t", version: "1", capabilities: ["tools"]});
say({type: "register_tool", name: "t", description: "Does it.", schema: {type: "object"}});
say({type: "ready"});
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const frame = JSON.parse(line);
  if (frame.type === "shutdown") process.exit(0);
  if (frame.type !== "tool_call") return;
  eval(frame.args.do);
  say({type: "tool_result", id: frame.id, content: [{type: "text", text: "done"}]});
});
"""
BOMB = """
printf '%s\\n' '{"type":"hello","name":"t","version":"1","capabilities":["tools"]}'
printf '%s\\n' '{"type":"register_tool","name":"t","description":"Forks.","schema":{"type":"object"}}'
printf '%s\\n' '{"type":"ready"}'
bomb() { for a in 1 2 3 4 5 6 7 8 9; do for b in 1 2 3 4 5 6 7 8 9; do sleep 20 & done; done; }
while read -r line; do case $line in *tool_call*) bomb;; *shutdown*) exit;; esac; done
"""
"""It stops by itself at some eighty processes, lest a limit that fails take the machine down."""
STRANGER = 61234
"""Nobody has this number, so whoever gets it is alone with it."""


def greedy(**limits: int) -> Made:
    argv = {"exec": sys.executable, "args": ["-I", "-S", "run.py"]}
    return Made("t", {**argv, "limits": limits}, {"run.py": GREEDY})


def in_node(**limits: int) -> Made:
    if not shutil.which("node"):
        pytest.skip("there is no node here")
    return Made("t", {"exec": "node", "args": ["run.js"], "limits": limits}, {"run.js": NODE})


@pytest.fixture(autouse=True)
def slow_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_DELAY", 60.0)


async def ended(it: Extended) -> str:
    """Why, as everybody is told; and its neighbour does not mind."""
    event = await it.seen(ExtensionChanged, extension="t", state="restarting")
    assert await it.call("well") == ("ok", False)
    return str(event.reason)


def limits_of(process: int, *, hard: bool = False) -> dict[str, str]:
    lines = Path(f"/proc/{process}/limits").read_text().splitlines()[1:]
    return {line[:25].strip(): line[25:].split()[hard] for line in lines}


EATEN = {
    "kept = [b'x' * 2**20 for _ in range(600)]": (
        {"memory_mb": 300},
        "exited with code 1: perhaps it is out of memory, of which it may use 300 MB (limits.memory_mb)",
    ),
    "kept = [open('/dev/null') for _ in range(100)]": (
        {"open_files": 64},
        "exited with code 1: perhaps it has too many files open: 64 may be (limits.open_files)",
    ),
    "open('fill', 'wb').write(b'x' * 2**21)": (
        {"file_size_mb": 1},
        "exited with code 1: perhaps it wrote a file larger than 1 MB (limits.file_size_mb)",
    ),
    "import signal; signal.signal(25, signal.SIG_DFL); open('fill', 'wb').write(b'x' * 2**21)": (
        {"file_size_mb": 1},
        "killed by SIGXFSZ: it wrote a file larger than 1 MB (limits.file_size_mb)",
    ),
    "while True: pass": (
        {"cpu_seconds": 1},
        "killed by SIGXCPU: it used more than 1 s of processor time (limits.cpu_seconds)",
    ),
    "import signal; signal.signal(24, signal.SIG_IGN)\nwhile True: pass": (
        {"cpu_seconds": 1},
        "killed by SIGKILL: perhaps it used more than 1 s of processor time (limits.cpu_seconds)",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="signals have other numbers elsewhere")
@pytest.mark.parametrize("code", EATEN)
async def test_one_that_takes_too_much_is_stopped_and_the_limit_is_named(tmp_path: Path, code: str) -> None:
    limits, expected = EATEN[code]
    quick = {"t": Choices(nice=0)}  # on a busy machine, what stands back takes long to use up its time
    async with nothing_left(), extended(tmp_path, greedy(**limits), tool("well"), choices=quick) as it:
        await it.ready()
        text, failed = await it.call("t", do=code)
        assert failed and expected in text
        assert await ended(it) == expected
        fill = tmp_path / "extensions" / "t" / "fill"
        assert not fill.exists() or fill.stat().st_size <= 2**20


async def test_the_limit_is_named_also_when_a_long_trace_follows_the_complaint(tmp_path: Path) -> None:
    trace = "'fatal error: runtime: out of memory\\n' + 'goroutine 1 [running]:\\n' * 100"
    code = f"import os; sys.stderr.write({trace}); sys.stderr.flush(); os._exit(2)"
    async with nothing_left(), extended(tmp_path, greedy(), tool("well")) as it:
        await it.ready()
        await it.call("t", do=code)
        assert (await ended(it)).endswith("it may use 4096 MB (limits.memory_mb)")


async def test_one_in_node_that_takes_too_much_memory_is_stopped_and_named(tmp_path: Path) -> None:
    code = "global.kept = []; for (let i = 0; i < 600; i++) kept.push(Buffer.alloc(1 << 20, 1))"
    async with nothing_left(), extended(tmp_path, in_node(memory_mb=300), tool("well")) as it:
        await it.ready()
        await it.call("t", do=code)
        assert (await ended(it)).endswith("it may use 300 MB (limits.memory_mb)")


def tasks_of(user: int, but: str = "") -> int:
    """Processes and threads of a user, as the kernel counts them, but for those in this state."""
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and entry.stat().st_uid == user and state(int(entry.name)) != but:
                found += len(os.listdir(entry / "task"))
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_fork_bomb_is_bounded_and_named_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    command, user = ["/bin/sh", "-c", BOMB], os.getuid()
    if user == 0:
        # The kernel does not count root's, so it must be somebody else.
        setpriv = shutil.which("setpriv")
        if not setpriv:
            pytest.skip("the number of processes does not limit root, and there is no setpriv to be another")
        user = STRANGER
        command = [setpriv, f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    most = tasks_of(user) + 40
    bomb = Made("t", {"exec": command[0], "args": command[1:], "limits": {"processes": most}})
    async with nothing_left(), extended(tmp_path, bomb, tool("well")) as it:
        await it.ready()
        text, failed = await it.call("t")
        assert failed and "(limits.processes)" in text
        assert tasks_of(user) <= most
        reason = await ended(it)
        assert reason.endswith(f": perhaps there are too many processes: you may have {most} (limits.processes)")
    # What nobody has waited for yet is counted, but does nothing any more.
    assert user != STRANGER or tasks_of(user, but="Z") == 0


async def test_one_that_ends_before_its_hello_for_want_of_memory_is_told_so(tmp_path: Path) -> None:
    early = Made("t", {"exec": sys.executable, "args": ["-c", "b'x' * 2**30"], "limits": {"memory_mb": 300}})
    async with nothing_left(), extended(tmp_path, early) as it:
        status = await it.state("t", "failed")
        assert status.reason.startswith("exited with code 1 before its hello; its last words: ")
        assert status.reason.endswith("(perhaps it is out of memory, of which it may use 300 MB (limits.memory_mb))")


async def test_honest_ones_do_not_reach_the_defaults(tmp_path: Path) -> None:
    code = """
import mmap, threading
done = threading.Event()
threads = [threading.Thread(target=done.wait) for _ in range(300)]
for thread in threads: thread.start()
files = [open("/dev/null") for _ in range(900)]
reserved = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, 0)
done.set()
for thread in threads: thread.join()
"""
    async with nothing_left(), extended(tmp_path, greedy()) as it:
        await it.ready()
        assert await it.call("t", do=code) == ("done", False)


async def test_an_honest_one_in_node_does_not_reach_the_defaults(tmp_path: Path) -> None:
    code = "new WebAssembly.Memory({initial: 1, maximum: 65536}); Buffer.alloc(200 << 20, 1)"
    async with nothing_left(), extended(tmp_path, in_node()) as it:
        await it.ready()
        assert await it.call("t", do=code) == ("done", False)


@pytest.mark.usefixtures("dialect")
async def test_the_defaults_hold_for_every_extension_and_the_users_choice_decides(tmp_path: Path) -> None:
    chosen = Choices(limits=Limits(memory_mb=8192, open_files=100, file_size_mb=0), nice=9)
    limits = {"memory_mb": 1_000_000, "open_files": 80, "file_size_mb": 1}
    made = (tool("usual"), tool("asks", limits=limits), tool("chosen", limits=limits))
    async with nothing_left(), extended(tmp_path, *made, choices={"chosen": chosen}) as it:
        await it.ready()
        pids = {name: it.status(name).pid or 0 for name in ("usual", "asks", "chosen")}
        held = {name: limits_of(pid) for name, pid in pids.items()}
        dumps = {limits_of(pid, hard=True)["Max core file size"] for pid in pids.values()}
        back = {name: os.getpriority(os.PRIO_PROCESS, pid) for name, pid in pids.items()}
    memory, size = "Max data size", "Max file size"
    assert {name: one[memory] for name, one in held.items()} == {
        "usual": str(4 << 30),
        "asks": str(4 << 30),
        "chosen": str(8 << 30),
    }
    assert {name: one[size] for name, one in held.items()} == {
        "usual": str(4 << 30),
        "asks": str(1 << 20),
        "chosen": "unlimited",
    }
    assert int(held["usual"]["Max open files"]) <= 4096
    assert (held["asks"]["Max open files"], held["chosen"]["Max open files"]) == ("80", "100")
    assert dumps == {"0"}
    assert {one["Max cpu time"] for one in held.values()} == {"unlimited"}
    here = os.getpriority(os.PRIO_PROCESS, 0)
    assert {name: level - here for name, level in back.items()} == {"usual": 5, "asks": 5, "chosen": 9}


def test_a_manifest_can_only_ask_for_less_and_the_user_for_anything() -> None:
    asked = Limits(memory_mb=10_000, processes=3, open_files=10_000, cpu_seconds=7)
    nothing = allowance(asked, Limits(), None, 100)
    assert nothing.limits == Limits(memory_mb=4096, processes=3, open_files=4096, file_size_mb=4096, cpu_seconds=7)
    chosen = Limits(memory_mb=20_000, processes=0, open_files=0, file_size_mb=0, cpu_seconds=0)
    assert allowance(asked, chosen, 0, 100) == Allowance(Limits(memory_mb=20_000), 0)
    assert allowance(Limits(), Limits(), None, None).limits.processes is None
    assert (allowance(Limits(), Limits(), None, 100).limits.processes or 0) > 600


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_no_fewer_processes_are_counted_than_the_user_has() -> None:
    assert (processes_now() or 0) + 20 >= tasks_of(os.getuid())  # they come and go meanwhile


ALL = allowance(Limits(cpu_seconds=5, processes=9), Limits(), None, 100)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("Traceback…\nMemoryError", "memory_mb"),
        ("malloc: Cannot allocate memory", "memory_mb"),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n1: 0xb7", "memory_mb"),
        ("fatal error: runtime: out of memory\n\ngoroutine 1 [running]:", "memory_mb"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "memory_mb"),
        ("memory allocation of 4096 bytes failed", "memory_mb"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "processes"),
        ("RuntimeError: can't start new thread", "processes"),
        ("sh: 1: Cannot fork", "processes"),
        ("OSError: [Errno 24] Too many open files: 'x'", "open_files"),
        ("Error: EMFILE: too many open files, open 'x'", "open_files"),
        ("OSError: [Errno 27] File too large", "file_size_mb"),
    ],
)
def test_a_limit_is_named_for_what_it_may_have_caused(words: str, field: str) -> None:
    told = ALL.culprit(Exit(1), words)
    assert told.startswith("perhaps ") and told.endswith(f"(limits.{field})")
    assert Allowance(Limits(), 0).culprit(Exit(1), words) == "", "where there is no limit, it is not to blame"


@pytest.mark.parametrize("exit_", [None, Exit(0), Exit(1), Exit(None, signal.SIGSEGV)])
def test_no_limit_is_blamed_for_anything_else(exit_: Exit | None) -> None:
    assert ALL.culprit(exit_, "Traceback (most recent call last):\nKeyError: 'memory'") == ""


@pytest.mark.usefixtures("dialect")
async def test_what_is_secret_stays_out_of_its_environment_and_its_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"GITHUB_TOKEN": "ghp_not-to-be-seen", "NPM_TOKEN": "granted", "OPENAI_API_KEY": "sk-not-to-be-seen"}
    for name, value in {**secrets, "PYTHONSTARTUP": "/not-to-be-seen", "PLAIN": "seen"}.items():
        monkeypatch.setenv(name, value)
    seen, granted = (chaos(name, f"write_env:{tmp_path / name}", "hello", "ready") for name in ("seen", "granted"))
    async with nothing_left(), extended(tmp_path, seen, granted, choices={"granted": grants("NPM_TOKEN")}) as it:
        await it.ready()
    (facts,), (more,) = it.recorded("seen"), it.recorded("granted")
    assert not {*secrets, "PYTHONSTARTUP"} & facts["env"].keys()
    assert {*secrets, "PYTHONSTARTUP"} & more["env"].keys() == {"NPM_TOKEN"}
    given: dict[str, Any] = {name: facts["env"].get(name) for name in ("PLAIN", "AI_AGENT", "HILT", "PATH")}
    assert given == {"PLAIN": "seen", "AI_AGENT": "hilt", "HILT": "1", "PATH": os.environ["PATH"]}
    log = (tmp_path / "logs" / "ext-seen.log").read_text()
    assert "withheld from its environment: " in log and "`hilt ext grant seen env:" in log
    assert all(name in log for name in (*secrets, "PYTHONSTARTUP")) and "not-to-be-seen" not in log


def grants(*names: str) -> Choices:
    return Choices(grants=tuple(f"env:{name}" for name in names))


@pytest.mark.usefixtures("dialect")
def test_hilts_own_keys_need_a_grant_by_name_also_where_all_else_is_granted(tmp_path: Path) -> None:
    hilt = Hilt(tmp_path, OLLAMA_API_KEY="own", SOME_TOKEN="granted")
    hilt.home.mkdir()
    (hilt.home / "config.toml").write_text('[extensions.t]\ngrants = ["env"]\n')
    made = tool("t", f"write_env:{tmp_path / 'facts'}").write(tmp_path / "extensions")
    done = hilt.run("-p", "hi", *hilt.script(says("hello")), "--ext", str(made))
    assert (done.code, done.out) == (0, "hello\n")
    env = json.loads((tmp_path / "facts").read_text())["env"]
    assert env["SOME_TOKEN"] == "granted"
    assert "OLLAMA_API_KEY" not in env
