"""The agent: the loop, the tools' calls, the session. It sees a registry snapshot, never a process."""
