import subprocess
import sys
from pathlib import Path

import pytest

from hilt.errors import PackageError
from hilt.packages.scripts.interpreters import cleared, find_interpreter


def python(directory: Path, name: str, *lines: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text("\n".join(("#!/bin/sh", *lines, "")))
    (directory / name).chmod(0o755)


def version(number: str) -> str:
    return f"echo {number.replace('.', ' ')} /opt/my python/bin/python"


def test_the_plain_python_is_taken_if_it_will_do(tmp_path: Path) -> None:
    python(tmp_path, "python3", version("3.11.2"))
    python(tmp_path, "python3.13", version("3.13.1"))

    found = find_interpreter(">=3.11", {"PATH": str(tmp_path)})

    assert (found.version, found.program) == ((3, 11, 2), Path("/opt/my python/bin/python"))


def test_one_that_is_named_by_its_version_is_taken_if_the_plain_one_will_not_do(tmp_path: Path) -> None:
    python(tmp_path, "python3", version("3.11.2"))
    python(tmp_path, "python3.12", version("3.12.1"))
    python(tmp_path, "python3.14", version("3.14.0"))

    assert find_interpreter(">=3.12,<3.14", {"PATH": str(tmp_path)}).version == (3, 12, 1)


@pytest.mark.parametrize("lines", [("exit 9",), ("echo nonsense",), ("echo 3 x 1 /python",), ("kill -9 $$",), ()])
def test_one_that_does_not_work_is_passed_over(tmp_path: Path, lines: tuple[str, ...]) -> None:
    python(tmp_path, "python3", *lines)
    python(tmp_path, "python3.12", version("3.12.1"))

    assert find_interpreter("", {"PATH": str(tmp_path)}).version == (3, 12, 1)


def test_one_that_hangs_is_passed_over(tmp_path: Path) -> None:
    python(tmp_path, "python3", "exec /bin/sleep 600")
    python(tmp_path, "python3.12", version("3.12.1"))

    assert find_interpreter("", {"PATH": str(tmp_path)}, patience=2).version == (3, 12, 1)


def test_when_none_will_do_those_there_are_get_named(tmp_path: Path) -> None:
    python(tmp_path, "python3", version("3.9.1"))

    with pytest.raises(PackageError, match=r'"==4\.\*": there is only 3\.9\.1, \d') as caught:
        find_interpreter("==4.*", {"PATH": str(tmp_path)})
    assert "install one" in caught.value.hint


def test_an_environment_is_seen_through_to_the_python_it_was_made_from(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)

    found = find_interpreter("", {"PATH": str(tmp_path / "venv/bin")})

    assert found.program.is_file() and not found.program.is_symlink()
    assert not found.program.is_relative_to(tmp_path) and not found.program.is_relative_to(sys.prefix)


def test_without_any_on_path_the_one_that_hilt_was_installed_with_serves(tmp_path: Path) -> None:
    assert find_interpreter("", {"PATH": str(tmp_path)}).version == sys.version_info[:3]
    assert find_interpreter("", {}).version == sys.version_info[:3]


def test_a_range_that_means_nothing_is_refused() -> None:
    with pytest.raises(PackageError, match="not a range of versions"):
        find_interpreter("three", {})


def test_only_what_leads_astray_is_taken_from_the_environment() -> None:
    astray = "PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_USER PIP_NO_BINARY PIP_EDITABLE"
    others = "UV_SYSTEM_PYTHON UV_PROJECT_ENVIRONMENT UV_NO_BINARY UV_LINK_MODE PIP_REQUIREMENT UV_PYTHON"
    kept = (
        "PATH HOME PIP_INDEX_URL PIP_CERT PIP_CONFIG_FILE UV_INDEX_URL UV_INDEX_MINE_PASSWORD HTTPS_PROXY PIP_NO_INDEX"
    )

    assert list(cleared(dict.fromkeys(f"{astray} {others} {kept}".split(), "x"))) == kept.split()
