"""The pictures in the documents show what the program shows, and ask nobody for anything."""

import importlib
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from docs.fences import DOCUMENTS, ROOT, links_of

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
_ROOM = 16_000
"""Bytes of one: they are in every clone."""


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("draw_pictures")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: str(picture.stem))
async def test_a_picture_is_as_the_program_draws_it_now(picture: Path, drawing: ModuleType, tmp_path: Path) -> None:
    [drawn] = (await drawing.pictures([picture.stem])).values()
    assert drawn == picture.read_text(encoding="utf-8"), "run make pictures, and look at what has changed"


def test_there_is_a_picture_of_every_scene_and_no_other(drawing: ModuleType) -> None:
    assert sorted(drawing.SCENES) == [picture.stem for picture in PICTURES]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: str(picture.stem))
def test_a_picture_is_small_and_has_nothing_of_another_place_in_it(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert len(text.encode()) < _ROOM
    tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(text).iter()}
    assert tags == {"svg", "title", "style", "rect", "g", "text"}
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"url\(|href|@import|@font-face|/tmp/|/home/|/root/|/Users/", text)


def test_every_picture_is_shown_in_a_document_and_the_readme_shows_the_conversation() -> None:
    shown = {(document.parent / target).resolve() for document in DOCUMENTS for _, target in links_of(document)}
    assert [picture.name for picture in PICTURES if picture not in shown] == []
    assert "](docs/pictures/conversation.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
