"""The documents tell the truth: Python blocks and marked shell examples run, and links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from spark_lineage.deliver.outbox.outbox import Outbox

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)(?P<path>[^)#]+)")


def _blocks(info: str) -> list[object]:
    return [
        pytest.param(block["text"], id=f"{document.name}:{text.count(chr(10), 0, block.start()) + 1}")
        for document in DOCUMENTS
        for text in [document.read_text()]
        for block in BLOCK.finditer(text)
        if block["info"] == info
    ]


@pytest.fixture
def lineage_file(tmp_path: Path) -> Path:
    """What the examples call ``openlineage-events.ndjson``: the recorded lineage of a small job."""
    recorded = ROOT / "tests" / "fixtures" / "events" / "a_414.ndjson"
    return Path(shutil.copy(recorded, tmp_path / "openlineage-events.ndjson"))


@pytest.mark.parametrize("program", _blocks("python"))
def test_python_block(program: str, tmp_path: Path) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-"], input=program, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("lineage_file")
@pytest.mark.parametrize("commands", _blocks("sh run"))
def test_shell_block(commands: str, tmp_path: Path) -> None:
    with closing(Outbox(tmp_path / "outbox")) as outbox:
        assert not outbox.destinations()
    for command in commands.splitlines():
        name, *arguments = shlex.split(command)
        program = Path(sys.executable).with_name(name)
        done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(document: Path) -> None:
    paths = [match["path"] for match in LINK.finditer(document.read_text())]
    assert not [path for path in paths if not (document.parent / path).exists()]
