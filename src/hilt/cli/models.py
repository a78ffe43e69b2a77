"""`hilt models`: what hilt knows about models."""

import sys
from typing import Any

from hilt.cli.flags import Parser
from hilt.frontends.terminal import clean, json_for_stdout
from hilt.home import Home
from hilt.model.models import ModelInfo


def run(argv: list[str]) -> int:
    parser = Parser(prog="hilt models", description="List the known models.", allow_abbrev=False)
    parser.add_argument("filter", nargs="?", default="", help="only those whose id or provider contains this")
    parser.add_argument("--provider", default="", help="only those of this provider")
    parser.add_argument("--json", action="store_true", help="a JSON list")
    options = parser.parse_args(argv[1:])

    from hilt.providers.catalogue import Catalogue

    found = [
        model
        for model in Catalogue.load(Home.find().models).all(options.provider or None)
        if options.filter.lower() in f"{model.provider}/{model.id}".lower()
    ]
    sys.stdout.write(_json(found) if options.json else clean(_table(found)))
    return 0


def _json(models: list[ModelInfo]) -> str:
    import msgspec

    return json_for_stdout(msgspec.json.encode([_row(model) for model in models])).decode() + "\n"


def _row(model: ModelInfo) -> dict[str, Any]:
    price = model.price
    return {
        "id": model.id,
        "provider": model.provider,
        "name": model.name,
        "context_window": model.context_window,
        "max_output": model.max_output,
        "reasoning": model.reasoning,
        "price_input": price.input if price else None,
        "price_output": price.output if price else None,
        "price_cache_read": price.cache_read if price else None,
        "price_cache_write": price.cache_write if price else None,
    }


def _table(models: list[ModelInfo]) -> str:
    head = ("provider", "model", "context", "output", "$ in", "$ out")
    rows = [
        (
            model.provider,
            model.id,
            f"{model.context_window or '?'}",
            f"{model.max_output or '?'}",
            f"{model.price.input:g}" if model.price else "?",
            f"{model.price.output:g}" if model.price else "?",
        )
        for model in models
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    return "\n".join(line.rstrip() for line in lines) + "\nprices in US dollars per million tokens\n"
