"""Trim litellm's table of models to the ones hilt serves: writes src/hilt/providers/catalogue.json.

    python scripts/build_catalogue.py                 # fetches the newest litellm with pip
    python scripts/build_catalogue.py --table F.json --version 1.2.3 --out catalogue.json

The table is MIT-licensed; its notice is beside the result, in catalogue.NOTICE.
"""

import argparse
import datetime as dt
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

TABLE = "litellm/model_prices_and_context_window_backup.json"
OUT = Path(__file__).resolve().parent.parent / "src" / "hilt" / "providers" / "catalogue.json"
PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "gemini": "google", "moonshot": "kimi"}
LEFT_OUT = (
    "ft:", "audio", "tts", "lyria", "image", "realtime", "computer-use", "robotics", "deep-research",
    "search-preview", "search-api", "container", "learnlm", "omni", "rosalind", "-exp-", "gemini-gemma",
)  # fmt: skip
"""Not for writing code with tools."""

BY_HAND = {
    # A subscription: calls have no price of their own.
    "kimi": {"kimi-for-coding": {"context": 262144, "output": 32768, "reasoning": True, "price": [0, 0, 0, 0]}},
}


def per_million(cost: float) -> float:
    return round(cost * 1_000_000, 6)


def entry(row: dict[str, Any]) -> dict[str, Any] | None:
    """One model as hilt keeps it, or None when something that matters is unknown."""
    if row.get("mode") not in ("chat", "responses"):
        return None
    if not all(row.get(key) for key in ("max_input_tokens", "input_cost_per_token", "output_cost_per_token")):
        return None
    price = row["input_cost_per_token"]
    # Where no price for cached tokens is listed there is no discount: they cost what input costs.
    costs = (
        price,
        row["output_cost_per_token"],
        row.get("cache_read_input_token_cost", price),
        row.get("cache_creation_input_token_cost", price),
    )
    return {
        "context": int(row["max_input_tokens"]),
        "output": int(row.get("max_output_tokens") or row.get("max_tokens") or 0),
        "reasoning": bool(row.get("supports_reasoning")),
        "price": [per_million(cost) for cost in costs],
    }


def trim(table: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    models: dict[str, dict[str, Any]] = {provider: {} for provider in PROVIDERS.values()}
    for name, row in table.items():
        provider = PROVIDERS.get(str(row.get("litellm_provider")))
        if provider is None or any(part in name for part in LEFT_OUT):
            continue
        model = entry(row)
        if model:
            models[provider][name.split("/")[-1]] = model
    for provider, added in BY_HAND.items():
        for name, model in added.items():
            models[provider].setdefault(name, model)
    return models


def render(models: dict[str, dict[str, Any]], version: str, date: str) -> str:
    """Compact JSON with one model per line, so that a new version reads well as a difference."""
    providers = []
    for provider, known in models.items():
        lines = [f"{json.dumps(name)}:{json.dumps(known[name], separators=(',', ':'))}" for name in sorted(known)]
        providers.append(f'"{provider}":{{\n' + ",\n".join(lines) + "\n}")
    head = f'"source":"litellm {version}, model_prices_and_context_window.json, MIT","date":"{date}"'
    return f'{{{head},"models":{{\n' + ",\n".join(providers) + "\n}}\n"


def fetch() -> tuple[dict[str, Any], str]:
    """The table inside the newest wheel, which is read and never installed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "litellm", "--no-deps", "-q", "-d", folder], check=True
        )
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            return json.loads(archive.read(TABLE)), wheel.name.split("-")[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="a copy of the table, instead of fetching it")
    parser.add_argument("--version", default="unknown", help="the version that copy is from")
    parser.add_argument("--date", default=dt.datetime.now(dt.UTC).date().isoformat())
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    table, version = (json.loads(options.table.read_text()), options.version) if options.table else fetch()
    models = trim(table)
    options.out.write_text(render(models, version, options.date))
    counts = ", ".join(f"{provider} {len(known)}" for provider, known in models.items())
    print(f"{options.out}: {options.out.stat().st_size} bytes, {counts}")


if __name__ == "__main__":
    main()
