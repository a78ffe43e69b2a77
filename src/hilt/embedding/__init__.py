"""Extensions for other agents: the host, the tool calls and the guards of hilt, without its loop, models and sessions.

`from hilt.extensions import ExtensionHost` is the way in; `docs/reference/embedding.md` says what is stable.
"""
