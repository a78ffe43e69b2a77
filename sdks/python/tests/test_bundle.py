"""The file that can be put beside an extension, the table of features, and what importing costs."""

import json
import subprocess
import sys
from pathlib import Path

import hilt_sdk
from hilt_sdk.protocol import FEATURES

SDK = Path(__file__).resolve().parents[1]
HEAVY = "asyncio collections dataclasses enum functools inspect json logging re signal threading traceback typing"


def test_the_bundled_file_is_made_from_the_package() -> None:
    ran = subprocess.run([sys.executable, SDK / "bundle.py", "--check"], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr + "run: python sdks/python/bundle.py"


def test_the_bundled_file_has_all_public_names_and_the_host_for_tests(tmp_path: Path) -> None:
    (tmp_path / "hilt_sdk.py").write_bytes((SDK / "hilt_sdk.py").read_bytes())
    (tmp_path / "tried.py").write_text(
        "from hilt_sdk import *\n"
        "from hilt_sdk.testing import Host\n"
        "ext = Extension('demo')\n"
        "@ext.tool\n"
        "async def add(a: int, b: int = 2) -> int:\n"
        "    return a + b\n"
        "for dialect in ('frames', 'jsonrpc'):\n"
        "    with Host(ext, dialect=dialect) as host:\n"
        "        assert host.call('add', a=1).text == '3'\n"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-E", "tried.py"], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_features_are_those_of_the_specification() -> None:
    spec = json.loads((SDK.parents[1] / "spec" / "features.json").read_text(encoding="utf-8"))
    told = {name: (rule["words"], rule["frames"], rule["jsonrpc"]) for name, rule in spec["features"].items()}
    assert told == FEATURES


def test_nothing_heavy_is_imported_until_the_extension_is_ready() -> None:
    program = (
        "import sys\n"
        "from hilt_sdk import Extension\n"
        "ext = Extension('demo')\n"
        "@ext.tool\n"
        "def add(a: int, b: 'int | None' = None) -> str:\n"
        '    """Add.\n\n    Args:\n        a: one\n    """\n'
        "    return 'x'\n"
        "ext.intercept('tool_call')(lambda call: None)\n"
        "ext.run()\n"
        f"print([name for name in {HEAVY!r}.split() if name in sys.modules], file=sys.stderr)\n"
    )
    lines = ['{"type":"hello_ack"}', '{"type":"tool_call","id":"1","name":"add","args":{"a":1}}', '{"type":"shutdown"}']
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(SDK / 'src')!r})\n{program}"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ran.returncode, ran.stderr) == (0, "[]\n")
    assert '"text":"x"' in ran.stdout


def test_all_public_names_are_there() -> None:
    assert all(getattr(hilt_sdk, name) is not None for name in hilt_sdk.__all__)
