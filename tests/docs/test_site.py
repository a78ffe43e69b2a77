"""The site has every page in its navigation, and its pages lead to each other as they do in the repository."""

import importlib
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.fences import ROOT


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("build_site")


def _shown(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for page in entry.values():
            yield from [page] if isinstance(page, str) else _shown(page)


def test_every_page_has_one_place_in_the_navigation(site: ModuleType) -> None:
    project = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    shown = sorted(_shown(project["nav"]))
    pages = sorted(str(site.place(source)) for source in site.gathered() if source.suffix == ".md")
    assert shown == pages, "put a new page into `nav` of zensical.toml"
    assert list(map("".join, project["nav"])) == ["Home", "Guides", "Concepts", "Reference", "Examples"]


def test_links_lead_to_where_the_pages_stand_on_the_site(site: ModuleType) -> None:
    guide, example = ROOT / "docs/guides/guards.md", ROOT / "examples/extensions/README.md"
    for source, link, moved in (
        (guide, "../../examples/extensions/project-kit", "../examples/extensions/project-kit/README.md"),
        (guide, "../concepts/security.md#limits", "../concepts/security.md#limits"),
        (guide, "../../README.md", "../index.md"),
        (example, "../../docs/reference/manifest.md#fields", "../../reference/manifest.md#fields"),
        (example, "../../spec/frames.schema.json", "../../spec/frames.schema.json"),
        (guide, "https://example.com/docs/x.md", "https://example.com/docs/x.md"),
        (guide, "#limits", "#limits"),
    ):
        assert site.staged(source, f"See [this]({link}).") == f"See [this]({moved})."


def test_a_link_out_of_the_repository_or_to_nothing_is_named(site: ModuleType, tmp_path: Path) -> None:
    guide, elsewhere = ROOT / "docs/guides/guards.md", tmp_path / "elsewhere.md"
    elsewhere.write_text("# Elsewhere\n", encoding="utf-8")
    for path in ("nothing.md", os.path.relpath(elsewhere, guide.parent), "../../tests"):
        with pytest.raises(site.Broken, match=r"docs/guides/guards\.md: .*: there is no such file in the repository"):
            site.staged(guide, f"[a]({path})")


def test_a_block_keeps_what_is_in_it_and_gets_the_name_of_its_file(site: ModuleType) -> None:
    page = "\n".join(
        [
            "<!-- file: a/b.jsonl -->",
            "```jsonl",
            '{"a": "[x](nothing.md)"} <!-- file: c -->',
            "```",
            "```sh",
            "true",
            "```",
            "| `a \\| b` | c \\| d |",
        ]
    )
    assert site.staged(ROOT / "docs/index.md", page).split("\n") == [
        '```json title="a/b.jsonl"',
        '{"a": "[x](nothing.md)"} <!-- file: c -->',
        "```",
        "```sh",
        "true",
        "```",
        "| `a | b` | c \\| d |",
    ]


def test_an_example_is_shown_with_its_files_but_not_with_a_copy_of_an_sdk(site: ModuleType, tmp_path: Path) -> None:
    for name in ("README.md", "b.py", "a.json", "hilt_sdk.py", "picture.png"):
        (tmp_path / name).write_text(f"this is {name}\n", encoding="utf-8")
    shown = site.with_sources(tmp_path / "README.md", "# It\n")
    assert shown.index("## Its files") < shown.index('````json title="a.json"\nthis is a.json\n````')
    assert shown.index("this is a.json") < shown.index("this is b.py")
    assert "sdk" not in shown and "picture" not in shown
