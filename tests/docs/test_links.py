"""The documents lead to each other, and nowhere else than where they say."""

from pathlib import Path

import pytest

from docs.fences import DOCUMENTS, LINKED, ROOT, anchors_of, links_of


def _named(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", LINKED, ids=_named)
def test_every_link_to_a_file_or_a_heading_arrives(document: Path) -> None:
    broken = []
    for line, target in links_of(document):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        if not file.exists():
            broken.append(f"{_named(document)}:{line}: {target}: there is no such file")
        elif anchor and anchor not in anchors_of(file):
            broken.append(f"{_named(document)}:{line}: {target}: there is no such heading")
    assert not broken, "\n".join(broken)


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        if document in reached or document not in DOCUMENTS:
            continue
        reached.add(document)
        waiting += [(document.parent / target.partition("#")[0]).resolve() for _, target in links_of(document)]
    assert [_named(document) for document in DOCUMENTS if document not in reached] == []


def test_the_readme_can_be_read_in_one_sitting() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150
