"""The skills that come with hilt: they are what their files say, and give way to the user's."""

from pathlib import Path

from hilt.context.shipped_skills import SHIPPED, with_shipped
from hilt.context.skills import Skill, find_skills, read_skill


def test_what_is_listed_is_what_the_files_say(tmp_path: Path) -> None:
    place = tmp_path / "home" / "skills"
    place.parent.mkdir()
    place.symlink_to(SHIPPED[0].path.parents[1])
    found = find_skills(tmp_path / "home", tmp_path, tmp_path)
    assert not found.problems
    assert {(one.name, one.description) for one in found.skills} == {(one.name, one.description) for one in SHIPPED}
    assert all("hilt ext new" in read_skill(one).body for one in SHIPPED)


def test_a_skill_of_the_users_takes_the_place_of_one_of_the_same_name() -> None:
    own = Skill(SHIPPED[0].name, "mine", Path("SKILL.md"), "global")
    assert with_shipped([own]) == (own,)
    assert with_shipped([]) == SHIPPED
