"""The `skill` tool: hands the model the whole text of a skill it has read about in the prompt."""

from collections.abc import Sequence

from msgspec import Struct

from hilt.context.skills import Skill, read_skill
from hilt.errors import ToolError
from hilt.model.contributions import Effect, Invocation, Tool, ToolOutput
from hilt.tools.arguments import parse
from hilt.tools.background import in_thread

_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "The skill's name, as listed in the system prompt"}},
    "required": ["name"],
    "additionalProperties": False,
}


class _SkillArgs(Struct, frozen=True):
    name: str


def skill_tool(skills: Sequence[Skill]) -> Tool:
    by_name = {skill.name: skill for skill in skills}

    async def invoke(invocation: Invocation) -> ToolOutput:
        name = parse(invocation.args, _SkillArgs).name
        skill = by_name.get(name)
        if skill is None:
            raise ToolError(f'there is no skill "{name}"; known skills: {", ".join(sorted(by_name))}')
        text = await in_thread(lambda _: _read(skill))
        return ToolOutput.of(text, path=str(skill.path), name=skill.name)

    return Tool(
        "skill",
        "Load the instructions of a skill by name. Do this before starting work that the skill covers.",
        _SCHEMA,
        invoke,
        effect=Effect.READ,
        parallel=True,
    )


def _read(skill: Skill) -> str:
    try:
        content = read_skill(skill)
    except OSError as error:
        raise ToolError(f"{skill.path} cannot be read: {error.strerror or error}") from error
    parts = [f"# Skill: {skill.name}", skill.description, "---", content.body.strip()]
    if content.files:
        listing = "\n".join(f"- {name}" for name in content.files)
        parts.append(f"Files of this skill, relative to {skill.path.parent}:\n{listing}")
    return "\n\n".join(part for part in parts if part)
