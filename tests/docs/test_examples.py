"""The examples do what their READMEs say: each passes its own fixtures, and works in the agent."""

import json
import re
import shutil
from pathlib import Path

import pytest

from support import golang
from support.agent import says
from support.ext_site import ExtSite
from support.hilt_process import until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "extensions"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/extension.json"))
_NEEDS = {"typescript": "node", "go": "go", "c": "cc", "python": "python3", "sh": "sh"}
_NOT_COPIED = shutil.ignore_patterns("bin", "__pycache__", "clock")


def language(name: str) -> str:
    return str(json.loads((EXAMPLES / name / "extension.json").read_text())["language"])


@pytest.fixture
def site(tmp_path: Path) -> ExtSite:
    return ExtSite(tmp_path, **golang.ENVIRONMENT)


def copied(name: str, site: ExtSite) -> str:
    """A copy that can be built, since the original may be read by others at the same time."""
    if not shutil.which(_NEEDS[language(name)]):
        pytest.skip(f"{_NEEDS[language(name)]} is not installed")
    sdks = site.folder / "sdks"
    if not sdks.exists():
        sdks.symlink_to(ROOT / "sdks")
    if language(name) == "go":
        golang.warmed()
    place = site.folder / "examples" / "extensions" / name
    shutil.copytree(EXAMPLES / name, place, symlinks=True, ignore=_NOT_COPIED)
    if language(name) == "go":
        golang.use_ours(place)
    if (place / "Makefile").exists():
        done = site.shell(f"make -s -C {place}")
        assert done.code == 0, done
    return str(place)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", [name for name in NAMES if (EXAMPLES / name / "tests").exists()])
def test_an_example_passes_its_own_tests(name: str, site: ExtSite) -> None:
    told = site.json("test", copied(name, site))
    assert told["outcomes"] and {one["state"] for one in told["outcomes"]} == {"passed"}, told


@pytest.mark.parametrize("name", NAMES)
def test_an_example_explains_itself_in_a_few_lines(name: str) -> None:
    readme = (EXAMPLES / name / "README.md").read_text()
    assert readme.startswith(f"# {name}\n") and len(readme.splitlines()) <= 45
    assert f"[{name}]({name}/README.md)" in (EXAMPLES / "README.md").read_text()


def test_the_sdk_beside_an_example_is_the_present_one() -> None:
    """In Python it is a copy, so that an example can be taken away as it is; bundle.py writes them."""
    present = (ROOT / "sdks" / "python" / "hilt_sdk.py").read_bytes()
    copies = sorted(EXAMPLES.glob("*/hilt_sdk.py"))
    assert len(copies) >= 5
    assert [path for path in copies if path.read_bytes() != present] == []


@pytest.mark.timeout(240)
def test_the_pair_talks_over_the_bus_in_two_languages(site: ExtSite) -> None:
    ping, pong = copied("bus-ping", site), copied("bus-pong", site)
    with site.rpc("--provider", "demo", "--ext", ping, "--ext", pong) as rpc:
        until(
            lambda: {one["state"] for one in rpc.ask("extensions")["data"]["extensions"]} == {"ready"}, "both are ready"
        )
        told = rpc.ask("command", name="ping", args="hello")
    assert told["data"] == {"action": "display", "display": "pong: hello"}


def test_the_guard_holds_the_demo_model_back(site: ExtSite) -> None:
    done = site.run("--provider", "demo", "--ext", copied("guard", site), "-p", "run `rm -rf build`")
    assert "this cannot be undone" in done.out + done.err


def test_the_parrot_answers_and_calls_tools(site: ExtSite) -> None:
    (site.project / "a.txt").write_text("")
    flags = ("--ext", copied("parrot", site), "--provider", "parrot")
    assert site.run(*flags, "-p", "good morning").out.strip() == "good morning"
    events = site.run(*flags, "--json", "-p", "call skill").events
    assert [event["name"] for event in events if event["type"] == "tool_call"] == ["skill"]


def test_git_tells_the_model_where_it_is(site: ExtSite) -> None:
    line = "git init -q -b trunk && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'the first step'"
    assert site.shell(line).code == 0
    (site.project / "new.txt").write_text("")
    with site.rpc("--ext", copied("git-context", site), *site.script(says("ok"))) as rpc:
        rpc.event("ext_status", extension="git-context", state="ready")
        rpc.send(type="prompt", id="1", message="hi")
        rpc.event("done")
        system = rpc.ask("host", method="host/llmSnapshot")["data"]["system"]
    assert re.search(r"[0-9a-f]{7} the first step", system)


def test_the_title_is_set_after_the_first_answer(site: ExtSite) -> None:
    script = site.script(says("because of a typo"), says('"Why the build fails"'))
    with site.rpc("--ext", copied("auto-title", site), *script) as rpc:
        rpc.event("ext_status", extension="auto-title", state="ready")
        rpc.send(type="prompt", id="1", message="why does the build fail?")
        rpc.event("done")
        titled = {"title": "Why the build fails"}
        until(lambda: rpc.ask("host", method="host/sessionTitle")["data"] == titled, "the title")
