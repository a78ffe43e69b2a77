"""Keeps secrets out of sight: what looks like a key is blacked out in answers, and in what tools return."""

import re

from hilt_sdk import Extension, Intercepted, Replace

ext = Extension("redactor", "1.0.0")

SECRETS = re.compile(
    r"""
    \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}            # keys of model providers
    | \bgh[pousr]_[A-Za-z0-9]{20,}               # GitHub
    | \bAKIA[0-9A-Z]{16}\b                       # AWS
    | (?<=-----BEGIN\ PRIVATE\ KEY-----)[^-]+    # PEM
    """,
    re.VERBOSE,
)


def clean(text: str) -> str:
    return SECRETS.sub("█████", text)


@ext.intercept("assistant_message")
def answer(message: Intercepted) -> Replace | None:
    return Replace(clean(message.text)) if SECRETS.search(message.text) else None


@ext.intercept("tool_result")
def result(output: Intercepted) -> str | None:
    return clean(output.text) if SECRETS.search(output.text) else None


if __name__ == "__main__":
    ext.run()
