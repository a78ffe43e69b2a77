"""The tables of names in the pages on porting have names that there are."""

import re

import pytest

from docs.fences import ROOT

SOURCES = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "sdks/go").glob("*.go")))


@pytest.mark.parametrize("page", ["porting-from-zot", "porting-from-piglet"])
def test_what_an_author_moves_to_is_in_the_sdk(page: str) -> None:
    text = (ROOT / f"docs/guides/{page}.md").read_text(encoding="utf-8")
    rows = text.split("Go SDK | hilt's |\n")[1].split("\n")
    named = set(re.findall(r"\b(?:hilt|ext|reply)\.([A-Z]\w+)", " ".join(row.split(" | ")[-1] for row in rows)))
    assert len(named) > 15
    known = set(re.findall(r"^(?:func (?:\(\w+ \*?\w+\) )?|type )([A-Z]\w+)", SOURCES, re.MULTILINE))
    assert named <= known, f"there is no {sorted(named - known)}"
