"""`hilt ext bench`: what an extension costs, beside the least that any would."""

import argparse
import asyncio
from typing import Any

import msgspec

from hilt.authoring.bench import AT_ONCE, ROUNDS, Benched, Figures, Spread
from hilt.authoring.bench import bench as measure
from hilt.cli.ext.arguments import arguments
from hilt.cli.ext.picking import pick
from hilt.cli.ext.site import Site, Told

_FOR_P95, _FOR_P99 = 20, 100
"""Of fewer, that would only be the most."""


def bench(site: Site, options: argparse.Namespace) -> Told:
    args: dict[str, Any] = arguments(options.args)
    found = pick(site, options.target).found
    done = asyncio.run(measure(found.where, site.cwd, options.tool, args, options.calls, site.config.extensions))
    return Told(msgspec.to_builtins(done), _report(done))


def _report(done: Benched) -> str:
    rows = [
        ("", "p50", "p95", "p99", "least … most", "× bare"),
        *_rows("start to ready", done.measured.start, done.bare.start, done.ratios.start),
        *_rows("one call", done.measured.call, done.bare.call, done.ratios.call),
        *_rows(f"{AT_ONCE} at once", done.measured.at_once, done.bare.at_once, done.ratios.at_once),
        ("memory", _megabytes(done.measured), "", "", "", ""),
        ("  bare", _megabytes(done.bare), "", "", "", ""),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    table = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    counts = f"{done.measured.start.count} starts, {done.measured.call.count} calls of {done.question}"
    about = f"""\
Times in ms. × bare: the median of {ROUNDS} rounds, and the range. Bare is a Python script without any library,
measured in turns with the other; on a busy machine the ratios say more than the times."""
    return f"{done.name}: {counts}, and as many {AT_ONCE} at once\n\n{table}\n\n{about}"


def _rows(
    what: str, spread: Spread, bare: Spread, ratio: tuple[float, float, float]
) -> list[tuple[str, str, str, str, str, str]]:
    middle, least, most = ratio
    return [
        (what, *_cells(spread), f"{middle:.2f} ({least:.2f} … {most:.2f})"),
        ("  bare", *_cells(bare), ""),
    ]


def _cells(spread: Spread) -> tuple[str, str, str, str]:
    return (
        _ms(spread.p50),
        _ms(spread.p95) if spread.count >= _FOR_P95 else "",
        _ms(spread.p99) if spread.count >= _FOR_P99 else "",
        f"{_ms(spread.least)} … {_ms(spread.most)}",
    )


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _megabytes(figures: Figures) -> str:
    return "not known here" if figures.memory is None else f"{figures.memory / 1e6:.1f} MB"
