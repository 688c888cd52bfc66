"""The documents tell the truth: Python blocks and marked shell examples run, and links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fast_spark import JAVA_ENV

from spark_lineage.inject import task_injection
from spark_lineage.launch import bounded_run
from spark_lineage.notify import assets
from spark_lineage.recover import closing
from spark_lineage.settings import Settings
from spark_lineage.task import task_events

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "dags_example/README.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
BLOCK = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# The module of an operator that is to be written.
LEFT_OPEN = "operators/spark_lineage/operators/lineage_X.py"
# Operators whose providers have an environment of their own.
CLOUDS = re.compile(r"operators\.lineage_(?:emr|glue|dataproc|databricks)\b")
LINK = re.compile(r"\]\((?!https?://|#)(?P<path>[^)#]+)")
# A page that the code names: in a log line, an answer of the doctor, or a docstring.
NAMED = re.compile(r"(?<![\w/])docs/(?P<page>[\w/-]+\.md)(?:#(?P<anchor>[\w-]+))?")
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)

# A process with Airflow in it takes most of a second to end as usual.
FORK_FOR_EACH = """
import json, os, sys, traceback, types
import airflow.sdk, airflow.providers.apache.spark.operators.spark_submit
for line in sys.stdin:
    folder, program = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(folder)
    printed = os.open("printed.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(printed, 1), os.dup2(printed, 2)
    sys.modules["__main__"] = block = types.ModuleType("__main__")
    try:
        exec(program, vars(block))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
"""


def _marks(block: str) -> list[pytest.MarkDecorator]:
    if CLOUDS.search(block):
        return [pytest.mark.clouds]
    # A Spark job.
    return [pytest.mark.spark, pytest.mark.truth] if "spark-lineage archive" in block else []


def _blocks(info: str) -> list[object]:
    return [
        pytest.param(
            block["text"],
            id=f"{document.name}:{text.count(chr(10), 0, block.start()) + 1}",
            marks=_marks(block["text"]),
        )
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


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Python that has imported Airflow, which takes as long as all blocks, and forks for each of them."""
    home = tmp_path_factory.mktemp("airflow")
    with subprocess.Popen(
        [sys.executable, "-c", FORK_FOR_EACH],
        env=os.environ | {"AIRFLOW_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.mark.parametrize("program", _blocks("python"))
def test_python_block(program: str, tmp_path: Path, interpreter: subprocess.Popen[str]) -> None:
    assert interpreter.stdin is not None
    assert interpreter.stdout is not None
    interpreter.stdin.write(json.dumps([str(tmp_path), program]) + "\n")
    interpreter.stdin.flush()
    assert interpreter.stdout.readline() == "0\n", (tmp_path / "printed.txt").read_text()


@pytest.mark.usefixtures("lineage_file")
@pytest.mark.parametrize("commands", _blocks("sh run"))
def test_shell_block(commands: str, tmp_path: Path, warm_python: Any) -> None:
    (tmp_path / "outbox").mkdir()
    for command in commands.splitlines():
        name, *arguments = shlex.split(command)
        assert name == "spark-lineage"
        done = warm_python.run("-m", "spark_lineage.cli", *arguments, env=os.environ | JAVA_ENV, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(document: Path) -> None:
    paths = [match["path"] for match in LINK.finditer(document.read_text())]
    assert not [path for path in paths if not (document.parent / path).exists()]


def _anchors(page: str) -> set[str]:
    """Return the anchors of the headings of a page, as MkDocs and GitHub make them."""
    headings = [match["text"].replace("`", "") for match in HEADING.finditer(page)]
    return {re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_and_anchors_that_the_code_names_are_there() -> None:
    roots = [ROOT / name for name in ("provider", "operators", "listeners", "tests", "benchmarks", "dags_example")]
    named = {
        (match["page"], match["anchor"])
        for path in (path for root in roots for path in root.rglob("*.py"))
        for match in NAMED.finditer(path.read_text())
    }
    pages = {page: ROOT / "docs" / page for page, _ in named}
    assert len(pages) >= 10
    assert not [page for page, path in pages.items() if not path.exists()]
    assert not [(page, anchor) for page, anchor in named if anchor and anchor not in _anchors(pages[page].read_text())]


def test_the_list_of_examples_has_all_of_them() -> None:
    listed = (ROOT / "dags_example" / "README.md").read_text()
    assert [path.name for path in (ROOT / "dags_example").glob("*.py") if f"]({path.name})" not in listed] == []


def test_questions_lead_to_each_page_of_users() -> None:
    docs = ROOT / "docs"
    questions = (docs / "README.md").read_text()
    pages = [path.relative_to(docs) for path in docs.rglob("*.md") if "handbook" not in path.parts]
    assert [str(page) for page in pages if str(page) != "README.md" and f"]({page})" not in questions] == []


def test_readme_has_at_most_600_words() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 600


def test_readme_states_the_longest_waits_of_a_task() -> None:
    settings = Settings()
    waits = {
        "the listener's jar": [settings.jar_seconds],
        "an earlier try": [closing._WAIT_SECONDS],
        "lineage files and event log": [settings.lineage_timeout],
        "all backends": [settings.brief_seconds],
        "all [listeners]": [settings.brief_seconds],
        "child runs, with `granularity=path`": [
            task_events._CHILDREN_SECONDS,
            assets._SECONDS_FOR_NAMES,
        ],
        "the cluster's last answer": [bounded_run.ANSWER_SECONDS],
        "that hangs": [bounded_run.ANSWER_SECONDS, task_injection._FILES_SECONDS],
    }
    readme = (ROOT / "README.md").read_text()
    rows = [row for row in readme.splitlines() if row.startswith(("| before", "| at "))]
    assert len(rows) == len(waits)
    for wait, seconds in waits.items():
        (row,) = [row for row in rows if wait in row]
        assert [one for one in seconds if not re.search(rf"\b{one:g} s\b", row)] == [], row
    assert f"After a kill by Airflow, all of this together takes at most {bounded_run.KILLED_SECONDS:g} s" in readme


def test_files_and_tables_that_contributing_names_are_there() -> None:
    roots = [ROOT / name for name in ("provider", "operators", "listeners", "tests", "benchmarks", "docs")]
    files = [path for root in roots for path in root.rglob("*.py")]
    source = "\n".join(path.read_text() for path in files)
    spans = re.findall(r"`([^`\n]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    modules = [span for span in spans if re.fullmatch(r"[\w/]+\.py", span) and span != LEFT_OPEN]
    tables = [span for span in spans if re.fullmatch(r"_?[A-Z_]{4,}", span)]
    assert (len(modules) > 20, len(tables) > 5) == (True, True)
    assert not [one for one in modules if not any(f"/{path}".endswith(f"/{one}") for path in files)]
    assert not [one for one in tables if not re.search(rf"^\s*{one}\b", source, re.MULTILINE)]
