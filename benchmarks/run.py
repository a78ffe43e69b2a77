"""`make bench`: every figure the project claims, measured here and now."""

import calls
import channel
import dialects
import fanout
import interception
import large
import mcp_sdk
import memory
import sdk_python
import session_log
import starting
import startup
import tui

SUITES = (
    startup,
    tui,
    session_log,
    channel,
    calls,
    dialects,
    mcp_sdk,
    starting,
    interception,
    fanout,
    memory,
    large,
    sdk_python,
)

if __name__ == "__main__":
    for suite in SUITES:
        for measured in suite.run():
            print(measured.line(), flush=True)
