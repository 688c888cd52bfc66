"""A virtual environment with Data.Rentgen alone: its pins are at odds with Airflow's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from lineage_backends.processes import BackendError, NotInstalledError, cache_directory, run

HERE = Path(__file__).parents[1]
VERSIONS = {
    "0.7.2": ("data-rentgen[server,consumer,http2kafka,postgres]", "data-rentgen-constraints-3.12.txt", (3, 12)),
    "0.3.1": ("data-rentgen[server,consumer,postgres]", "data-rentgen-constraints-3.11.txt", (3, 11)),
}
CHOICE = "SPARK_LINEAGE_DATA_RENTGEN"


@dataclass(frozen=True)
class Environment:
    """Where it is, and which Data.Rentgen is in it."""

    python: Path
    version: str

    @property
    def has_http2kafka(self) -> bool:
        """Whether it takes events over HTTP by itself; 0.3.1 reads Kafka only."""
        return self.version != "0.3.1"


def environment() -> Environment:
    """The newest Data.Rentgen that a Python of this machine can run, set up at the first call.

    ``SPARK_LINEAGE_DATA_RENTGEN`` chooses one version; without Python 3.12 it is 0.3.1.
    """
    chosen = os.environ.get(CHOICE)
    if chosen and chosen not in VERSIONS:
        raise BackendError(f"{CHOICE}={chosen}: the tests know {' and '.join(VERSIONS)}.")
    for version in [chosen] if chosen else VERSIONS:
        requirement, constraints, python_version = VERSIONS[version]
        for python in _pythons():
            if _runs(python, python_version):
                return Environment(_set_up(python, version, requirement, HERE / constraints), version)
    raise NotInstalledError(
        f"No Python runs Data.Rentgen {chosen or ''}: it needs 3.12, or 3.11 for its version 0.3.1."
    )


def _set_up(python: str, version: str, requirement: str, constraints: Path) -> Path:
    key = sha256(constraints.read_bytes() + python.encode()).hexdigest()[:12]
    folder = cache_directory() / f"data-rentgen-{version}-{key}"
    ready = folder / ".ready"
    if not ready.exists():
        # A set-up that was cut short begins anew, and two at once do not meet.
        with tempfile.TemporaryDirectory(dir=folder.parent) as old:
            if folder.exists():
                shutil.move(folder, old)
        run("Making an environment for Data.Rentgen", [python, "-m", "venv", folder], env=os.environ)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--constraint", constraints]
        run(f"Installing Data.Rentgen {version}", [*pip, requirement], env=os.environ)
        ready.touch()
    return folder / "bin" / "python"


def _pythons() -> Iterator[str]:
    yield sys.executable
    for name in ("python3.12", "python3.13", "python3.11", "python3"):
        if found := shutil.which(name):
            yield found
    # A shim of pyenv may stand for a Python that is there and not chosen.
    yield from map(str, sorted(Path.home().glob(".pyenv/versions/3.1[23].*/bin/python3")))


def _runs(python: str, version: tuple[int, int]) -> bool:
    """Whether it is that Python, and works: there may be nothing behind a shim."""
    code = f"import ensurepip, sys; sys.exit(sys.version_info[:2] != {version})"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, check=False, cwd="/")
    except OSError:
        return False
    return done.returncode == 0
