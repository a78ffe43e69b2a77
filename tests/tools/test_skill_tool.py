from pathlib import Path

from hilt.context.skills import Skill
from hilt.model.contributions import Effect
from tools.kit import Bench


def make_skill(folder: Path, text: str, description: str = "Writes release notes.") -> Skill:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return Skill("notes", description, folder / "SKILL.md", "project")


async def test_a_skill_is_handed_over_without_its_front_matter(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "notes", "---\nname: notes\n---\n\nDo it well.\n\n---\nAnd kindly.\n")
    bench = Bench(tmp_path, skills=(skill,))
    assert await bench.text("skill", name="notes") == (
        "# Skill: notes\n\nWrites release notes.\n\n---\n\nDo it well.\n\n---\nAnd kindly."
    )


async def test_the_files_of_a_skill_are_listed(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "notes", "Body")
    (tmp_path / "notes" / "scripts").mkdir()
    (tmp_path / "notes" / "scripts" / "run.sh").touch()
    (tmp_path / "notes" / "reference.md").touch()
    (tmp_path / "notes" / "loop").symlink_to(tmp_path / "notes")
    text = await Bench(tmp_path, skills=(skill,)).text("skill", name="notes")
    assert text.endswith(f"relative to {tmp_path}/notes:\n- loop\n- reference.md\n- scripts/run.sh")


async def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    bench = Bench(tmp_path, skills=(make_skill(tmp_path / "notes", "Body"),))
    assert await bench.refusal("skill", name="note") == 'there is no skill "note"; known skills: notes'


async def test_a_skill_that_vanished_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "notes", "Body")
    skill.path.unlink()
    message = await Bench(tmp_path, skills=(skill,)).refusal("skill", name="notes")
    assert str(skill.path) in message


async def test_a_long_skill_is_cut_with_a_note(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "notes", "word " * 20_000)
    text = await Bench(tmp_path, skills=(skill,)).text("skill", name="notes")
    assert len(text) < 70_000
    assert "[cut: " in text


def test_the_tool_is_there_only_when_there_is_a_skill(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert set(bench.tools) == {"read", "write", "edit", "bash"}
    (tmp_path / "more").mkdir()
    tool = Bench(tmp_path / "more", skills=(make_skill(tmp_path / "notes", ""),)).tools["skill"]
    assert tool.effect is Effect.READ
    assert tool.parallel
