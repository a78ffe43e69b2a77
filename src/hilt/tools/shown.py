"""The promise behind a permission: what was shown is what runs, or nothing runs.

Owns the comparison. What a preview says of a change is the business of the tool that makes it.
"""

from hilt.errors import ToolError
from hilt.model.contributions import Invocation, Preview
from hilt.tools.files import Target


def keep_promise(invocation: Invocation, preview: Preview, target: Target) -> None:
    """Raise when somebody allowed a change and it would now be another one."""
    if invocation.shown is not None and invocation.shown != preview:
        raise ToolError(
            f"{target.name} changed after it was shown: nothing was done", hint="look at it again and repeat the call"
        )
