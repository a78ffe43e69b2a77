import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilt.context.skills import Found, Skill, find_skills, manifest


class Places:
    def __init__(self, folder: Path) -> None:
        self.home, self.cwd, self.user = folder / "state", folder / "project", folder / "user"

    def add(self, place: Path, name: str, text: str | bytes) -> Path:
        path = place / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def find(self) -> Found:
        return find_skills(self.home, self.cwd, self.user)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def front(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nBody\n"


def test_of_one_name_the_first_place_wins(places: Places) -> None:
    order = [
        (places.cwd / ".hilt" / "skills", "project"),
        (places.cwd / ".zot" / "skills", "project (zot)"),
        (places.home / "skills", "global"),
        (places.cwd / ".claude" / "skills", "project (claude)"),
        (places.user / ".claude" / "skills", "global (claude)"),
        (places.cwd / ".agents" / "skills", "project (agents)"),
        (places.user / ".agents" / "skills", "global (agents)"),
        (places.user / ".config" / "agents" / "skills", "global (agents)"),
    ]
    for place, source in reversed(order):
        path = places.add(place, "folder", front("same", source))
        assert places.find().skills == (Skill("same", source, path, source),)


def test_name_and_description_come_from_the_front_matter(places: Places) -> None:
    path = places.add(
        places.home / "skills",
        "folder",
        "---\r\nname: no\r\ndescription: >\r\n  Folded\r\n  text.\r\nmetadata: {a: b}\r\n---\r\n",
    )
    assert places.find() == Found((Skill("no", "Folded text.", path, "global"),), ())


def test_without_front_matter_the_folder_names_the_skill(places: Places) -> None:
    places.add(places.home / "skills", "plain", "Just text\n")
    places.add(places.home / "skills", "empty", "")
    assert [(skill.name, skill.description) for skill in places.find().skills] == [("empty", ""), ("plain", "")]
    assert places.find().problems == ()


@pytest.mark.parametrize(
    "text",
    ["---\nname: [unclosed\n---\nBody\n", "---\n- a\n- list\n---\n", "---\nname: never ends\n", "---\na: b: c\n---\n"],
)
def test_bad_front_matter_is_a_problem_and_the_skill_stays_usable(places: Places, text: str) -> None:
    path = places.add(places.home / "skills", "folder", text)
    found = places.find()
    assert [skill.name for skill in found.skills] == ["folder"]
    assert len(found.problems) == 1
    assert found.problems[0].startswith(f"{path}: the front matter")
    assert "\n" not in found.problems[0]


def test_deep_and_self_referring_yaml_does_no_harm(places: Places) -> None:
    places.add(places.home / "skills", "deep", "---\nname: " + "[" * 16_300 + "\n---\n")
    places.add(places.home / "skills", "laughs", "---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\nname: fine\n---\n")
    assert [skill.name for skill in places.find().skills] == ["deep", "fine"]


def test_what_is_no_skill_is_passed_over(places: Places) -> None:
    skills = places.home / "skills"
    skills.mkdir(parents=True)
    (skills / "file").touch()
    (skills / "nothing-inside").mkdir()
    (skills / "pipe").mkdir()
    os.mkfifo(skills / "pipe" / "SKILL.md")
    (skills / "dir" / "SKILL.md").mkdir(parents=True)
    assert places.find() == Found((), ())


def test_link_loops_are_problems_and_linked_skills_are_found(places: Places, tmp_path: Path) -> None:
    skills = places.home / "skills"
    skills.mkdir(parents=True)
    (skills / "loop").symlink_to("loop")
    real = places.add(tmp_path / "elsewhere", "real", front("real", "There"))
    (skills / "linked").symlink_to(real.parent)
    found = places.find()
    assert [skill.name for skill in found.skills] == ["real"]
    assert len(found.problems) == 1
    assert "loop" in found.problems[0]


def test_long_and_unprintable_values_are_tamed(places: Places) -> None:
    places.add(places.home / "skills", "folder", front('"a\\nb\\e"', "x" * 5_000).encode() + b"\xff\xfe")
    (skill,) = places.find().skills
    assert skill.name == "a b"
    assert len(skill.description) == 1_024


def test_a_crowded_place_is_bounded(places: Places) -> None:
    for n in range(210):
        places.add(places.home / "skills", f"s{n:03}", "x")
    found = places.find()
    assert len(found.skills) == 200
    assert "more than 200" in found.problems[0]


def test_the_manifest_is_sorted_and_shortens_the_home(tmp_path: Path) -> None:
    skills = [
        Skill("zeta", "", Path("/opt/zeta/SKILL.md"), "global"),
        Skill("alpha", "First.", tmp_path / "a" / "SKILL.md", "project"),
    ]
    heading, *rows = manifest(skills, tmp_path).split("\n")
    assert "skill tool" in heading
    assert rows == ["- alpha [~/a/SKILL.md]: First.", "- zeta [/opt/zeta/SKILL.md]: (no description)"]
    assert manifest([]) == ""


def test_yaml_is_not_loaded_when_there_is_no_skill(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hilt.context.skills import find_skills; "
        "p = Path(sys.argv[1]); find_skills(p, p, p); assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_no_content_breaks_the_search(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "skills" / "folder" / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"---\n" + data + b"\n---\nBody")
    assert len(find_skills(tmp_path, tmp_path, tmp_path).skills) == 1
