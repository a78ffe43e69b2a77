"""The agent's tools: which there are, calling one, and which of them the model has."""

from hilt.extensions.capabilities import CALL, SUBMIT
from hilt.extensions.services.asking import LONG, Asker, Backing, Service, Table, missing
from hilt.model.contributions import ToolOutput
from hilt.packages.members import quoted
from hilt.wire.jsonrpc_services import (
    ActivateTool,
    Described,
    ExecuteTool,
    ExecuteToolResult,
    ListedTool,
    ListTools,
    ListToolsResult,
    SetToolFilter,
    ToolDefsResult,
)
from hilt.wire.jsonrpc_types import Block, Empty
from hilt.wire.results import relayed


async def list_tools(backing: Backing, params: ListTools, _: Asker) -> ListToolsResult:
    safe_only = params.filter == "background_safe"
    return ListToolsResult(
        tuple(
            ListedTool(tool.name, tool.description, tool.schema, tool.deferred)
            for tool in backing.facilities.tools.list()
            if tool.background_safe or not safe_only
        )
    )


async def execute_tool(backing: Backing, params: ExecuteTool, asker: Asker) -> ExecuteToolResult:
    """What a tool, a guard or the user refuses is a result, as it is for the model."""
    if backing.snapshot().tool(params.name) is None:
        raise missing(f"unknown tool: {quoted(params.name)}")
    return _executed(await backing.agent.call_tool(params.name, params.args, asker.name, asker.chain()))


def _executed(output: ToolOutput) -> ExecuteToolResult:
    pieces, truncated = relayed(output.content)
    blocks = tuple(Block(piece.type, piece.text, piece.data, piece.mime_type) for piece in pieces)
    if truncated:
        blocks += (Block("text", "[the result was longer; the rest was left out]"),)
    code, hint = output.details.get("error_code", ""), output.details.get("error_hint", "")
    return ExecuteToolResult(
        blocks, output.is_error, code if isinstance(code, str) else "", hint if isinstance(hint, str) else ""
    )


async def tool_defs(backing: Backing, _: Empty, __: Asker) -> ToolDefsResult:
    return ToolDefsResult(tuple(Described(tool.name, tool.description) for tool in backing.facilities.tools.list()))


async def activate_tool(backing: Backing, params: ActivateTool, _: Asker) -> Empty:
    if not backing.facilities.tools.activate(params.name):
        raise missing(f"no deferred tool: {quoted(params.name)}")
    return Empty()


async def set_tool_filter(backing: Backing, params: SetToolFilter, asker: Asker) -> Empty:
    backing.facilities.tools.narrow(params.names, asker.name)
    return Empty()


SERVICES: Table = {
    "host/listTools": Service(list_tools),
    "host/executeTool": Service(execute_tool, (CALL,), LONG),
    "host/toolDefs": Service(tool_defs),
    "host/activateTool": Service(activate_tool),
    "host/setToolFilter": Service(set_tool_filter, (SUBMIT,)),
}
