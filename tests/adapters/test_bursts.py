"""How the lines of a driver are read from its pipe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_lineage.adapters import driver_output
from spark_lineage.adapters.driver_output import in_bursts


@contextmanager
def driver(program: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program as the Spark provider's hook does."""
    command = [sys.executable, "-u", "-c", f"import pathlib, time\n{program}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        yield process


@pytest.fixture
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst has no end but that of the driver."""
    monkeypatch.setattr(driver_output, "_LOOKS_MILLISECONDS", [10] * 360_000)


@pytest.mark.usefixtures("_long")
def test_a_line_comes_with_those_after_it_and_at_the_end_at_once(tmp_path: Path) -> None:
    end = tmp_path / "end"
    program = f"for n in range(3): print('line', n); time.sleep(0.05)\npathlib.Path({str(end)!r}).touch()"
    with driver(program) as process:
        lines = in_bursts(iter(process.stdout), process.stdout)
        assert next(lines) == "line 0\n"
        assert end.exists()
        assert list(lines) == ["line 1\n", "line 2\n"]


def test_a_burst_ends_though_the_driver_goes_on(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with driver(
        f"print('first')\nwhile not pathlib.Path({str(seen)!r}).exists(): time.sleep(0.01)\nprint('last')"
    ) as process:
        lines = in_bursts(iter(process.stdout), process.stdout)
        assert next(lines) == "first\n"
        seen.touch()
        assert list(lines) == ["last\n"]


@pytest.mark.usefixtures("_long")
def test_a_driver_with_much_to_say_is_not_held_up() -> None:
    with driver("for n in range(12_000): print('x' * 99)\nprint('end')") as process:
        *lines, end = in_bursts(iter(process.stdout), process.stdout)
        assert end == "end\n"
        assert set(lines) == {"x" * 99 + "\n"}
        assert len(lines) == 12_000
