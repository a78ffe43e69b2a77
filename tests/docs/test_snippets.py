"""Every block of code in the documents works as written."""

import ast
import json
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from docs.console import Scratch, exchanges_in, matches, run_exchanges
from docs.fences import DOCUMENTS, ROOT, Fence, fences_of

LANGUAGES = {"sh", "console", "python", "json", "jsonl", "toml", "yaml", "markdown", "text"}
LANGUAGES |= {"javascript", "typescript", "go", "c"}
RUN = {"sh", "console", "python"}

FENCES = [fence for document in DOCUMENTS for fence in fences_of(document)]
STORIES = [document for document in DOCUMENTS if any(fence.language in RUN for fence in fences_of(document))]


def _named(value: object) -> str:
    return value.where if isinstance(value, Fence) else str(Path(str(value)).relative_to(ROOT))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", STORIES, ids=_named)
def test_the_commands_of_a_document_work_in_the_order_they_are_read(document: Path, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    scratch.prepare()
    for fence in fences_of(document):
        if fence.saved_as:
            path = scratch.path(fence.saved_as)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fence.text, encoding="utf-8")
        elif fence.not_run is None and (not fence.needs or shutil.which(fence.needs)):
            _follow(fence, scratch)


@pytest.mark.parametrize("fence", FENCES, ids=_named)
def test_a_block_is_written_in_the_language_it_names(fence: Fence) -> None:
    assert fence.language in LANGUAGES, f"{fence.where}: name one of {sorted(LANGUAGES)}, not {fence.language!r}"
    assert fence.not_run != "", f"{fence.where}: say why it is not run"
    try:
        _parse(fence)
    except (SyntaxError, ValueError, yaml.YAMLError, AssertionError) as error:
        pytest.fail(f"{fence.where}: {error}")


def _follow(fence: Fence, scratch: Scratch) -> None:
    match fence.language:
        case "console":
            _compare(fence, scratch)
        case "sh" | "python":
            program = ["/bin/sh", "-eu", "-c"] if fence.language == "sh" else [sys.executable, "-c"]
            ran = scratch.run([*program, fence.text])
            assert ran.code == 0, f"{fence.where}: exit code {ran.code}\n{ran.output}"


def _compare(fence: Fence, scratch: Scratch) -> None:
    exchanges = exchanges_in(fence.text)
    outputs = run_exchanges(exchanges, scratch)
    for exchange, output in zip(exchanges, outputs, strict=False):
        where = f"{fence.where.rpartition(':')[0]}:{fence.line + exchange.offset}"
        if not matches(exchange.expected, output):
            pytest.fail(
                f"{where}: $ {exchange.command}\n--- promised\n{exchange.expected}\n--- printed\n{output}",
                pytrace=False,
            )
    assert len(outputs) == len(exchanges), f"{fence.where}: the shell ended after {len(outputs)} commands"


def _parse(fence: Fence) -> None:
    match fence.language:
        case "python":
            ast.parse(fence.text)
        case "json":
            json.loads(fence.text)
        case "jsonl":
            for line in fence.text.splitlines():
                if line.strip() and not line.startswith(("#", "//")):
                    json.loads(line)
        case "yaml":
            yaml.safe_load(fence.text)
        case "toml":
            tomllib.loads(fence.text)
        case "console":
            exchanges_in(fence.text)
