"""The built-in tools, published to the registry like anyone's."""

from collections.abc import Sequence

from hilt.context.skills import Skill
from hilt.model.contributions import Tool
from hilt.tools.bash import bash_tool
from hilt.tools.edit import edit_tool
from hilt.tools.read import read_tool
from hilt.tools.shell import Shell
from hilt.tools.skill import skill_tool
from hilt.tools.workspace import Workspace
from hilt.tools.write import write_tool


def builtin_tools(workspace: Workspace, shell: Shell, skills: Sequence[Skill] = ()) -> tuple[Tool, ...]:
    """Every built-in tool; `skill` only when there is one to load."""
    tools = (read_tool(workspace), write_tool(workspace), edit_tool(workspace), bash_tool(workspace, shell))
    return (*tools, skill_tool(skills)) if skills else tools
