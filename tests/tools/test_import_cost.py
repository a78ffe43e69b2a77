import subprocess
import sys

COSTLY = ("difflib", "shlex", "yaml", "hashlib", "base64", "tempfile", "secrets", "jsonschema_rs", "httpx2", "anyio")


def test_importing_the_tools_loads_nothing_costly() -> None:
    code = (
        "import asyncio, msgspec, sys; before = set(sys.modules); import hilt.tools; print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name in COSTLY] == []
