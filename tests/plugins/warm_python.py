"""Fixture: Python programs with Airflow that start in a quarter of the time, each in a process of its own.

Most of what ``spark-lineage doctor`` takes, Python spends on importing 1,300 modules of Airflow's dependencies, and on
taking them down at its end. Here one process has imported them, but nothing of Airflow or of ours, and forks for each
program, which reads its environment and Airflow's configuration as one that was started anew.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import traceback
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any

import pytest

IMPORTED = ("airflow.__main__", "airflow.providers.openlineage.plugins.openlineage", "spark_lineage.deliver.hooks")

LIMIT_SECONDS = 400


class WarmPython:
    """The process; ``run`` is ``subprocess.run`` of ``[sys.executable, *arguments]``, which begin with -m or -c."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=os.environ | {"AIRFLOW_HOME": str(folder / "airflow")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *arguments: object, env: Mapping[str, str], cwd: Path | None = None, is_one_stream: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, and return what it printed; with ``is_one_stream`` all as standard output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        streams = [self.folder / name for name in ("stdout", "stdout" if is_one_stream else "stderr")]
        for each in streams:
            each.write_text("")
        argv = [*map(str, arguments)]
        asked = {"argv": argv, "env": dict(env), "cwd": str(cwd or Path.cwd()), "streams": [*map(str, streams)]}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        out, err = (each.read_text(errors="replace") for each in streams)
        return subprocess.CompletedProcess(argv, code, out, err)

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """The one of this process of pytest."""
    python = WarmPython(tmp_path_factory.mktemp("warm"))
    yield python
    python.close()


def main() -> None:
    """Answer to each program on standard input with its exit code."""
    for name in _imported_with_airflow():
        with suppress(Exception):
            import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run_in_child(**json.loads(line))
        if not select([os.pidfd_open(child)], [], [], LIMIT_SECONDS)[0]:
            os.kill(child, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201


def _imported_with_airflow() -> list[str]:
    """Return the modules of others that Airflow imports, as another process has found that out."""
    reading, writing = os.pipe()
    if not os.fork():
        # Airflow prints warnings of its import to standard output, where the answers go.
        os.dup2(2, 1)
        for name in IMPORTED:
            with suppress(ImportError):
                import_module(name)
        others = [name for name in sys.modules if name.split(".")[0] not in {"__main__", "airflow", "spark_lineage"}]
        os.write(writing, json.dumps(others).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        found: list[str] = json.load(stream)
    os.wait()
    return found


def _run_in_child(argv: list[str], env: dict[str, str], cwd: str, streams: list[str]) -> None:
    for number, name in enumerate([os.devnull, *streams]):
        os.dup2(os.open(name, os.O_RDWR | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[0:1] = ["", *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    code = _exit_code(argv)
    # As at the end of Python, but for taking down each module.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def _exit_code(argv: list[str]) -> int:
    kind, program, *arguments = argv
    sys.argv = [kind, *arguments]
    try:
        if kind == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.modules["__main__"] = main = types.ModuleType("__main__")
            exec(program, vars(main))  # noqa: S102
    except SystemExit as end:
        code: Any = end.code
        if not isinstance(code, str):
            return int(code or 0)
        print(code, file=sys.stderr)  # noqa: T201
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main()
