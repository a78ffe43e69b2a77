"""Tells the model what git knows: which branch, what has changed, and what was done last."""

import subprocess

from hilt_sdk import Extension

ext = Extension("git-context", "1.0.0")
LONGEST = 4000


def git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-C", ext.cwd, *words],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=2,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


@ext.message_hook()
def state(message: str) -> str | None:
    """Added to what the model is told with this message, and with this one only."""
    branch = git("rev-parse", "--abbrev-ref", "HEAD")
    if not branch:
        return None  # no repository, or nothing in it yet
    changed = git("status", "--short") or "nothing"
    return f"The git branch is {branch}. Changed and not committed:\n{changed}"[:LONGEST]


@ext.on_ready
def introduce() -> None:
    log = git("log", "-5", "--format=%h %s")
    if log:
        ext.prompt_section("Recent commits", log[:LONGEST])


if __name__ == "__main__":
    ext.run()
