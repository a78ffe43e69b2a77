"""What is read before the first word: nothing of extensions where there are none, and no service before it is asked."""

import subprocess
import sys

import pytest


def loaded(*modules: str) -> set[str]:
    code = f"import sys; import {', '.join(modules)}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("part", ["hilt.extensions", "hilt.packages", "hilt.wire", "hilt.model.services"])
def test_a_session_without_extensions_loads_nothing_of_them(part: str) -> None:
    assert [name for name in loaded("hilt.cli.wiring") if name == part or name.startswith(f"{part}.")] == []


@pytest.mark.parametrize("module", ["hilt.wire.jsonrpc_services", "hilt.wire.jsonrpc_methods"])
def test_what_the_services_carry_is_not_defined_before_somebody_asks(module: str) -> None:
    assert module not in loaded("hilt.extensions.host", "hilt.extensions.frames.extension", "hilt.cli.facilities")


def test_help_for_extensions_loads_nothing_of_what_the_verbs_do() -> None:
    parts = ("hilt.extensions", "hilt.embedding", "hilt.authoring", "hilt.frontends", "hilt.cli.config")
    assert [name for name in loaded("hilt.cli.ext") if name.startswith(parts)] == []
