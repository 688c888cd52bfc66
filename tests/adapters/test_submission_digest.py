"""What a task submits is the same on another day, and another thing with another program or other arguments."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from spark_lineage.adapters.submission_digest import is_known, submission_digest
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator


def digest(rendered: dict[str, Any] | None = None, **arguments: Any) -> str:
    """Return the digest of a task as it runs: a copy of the DAG's own, whose fields are rendered."""
    with DAG("shop", start_date=datetime(2024, 1, 1, tzinfo=UTC), schedule=None):
        task = LineageSparkSubmitOperator(task_id="load", **{"application": "job.py", **arguments})
    running = copy.copy(task)
    for name, value in (rendered or {}).items():
        setattr(running, name, value)
    return submission_digest(running)


@pytest.mark.parametrize(
    "template", ["--day={{ ds }}", "{{ data_interval_start }}", "{{ macros.ds_add(ds, 1) }}", "{% if ti %}a{% endif %}"]
)
def test_another_day_is_no_other_submission(template: str) -> None:
    one = digest({"application_args": ["2024-01-01", "/lake"]}, application_args=[template, "/lake"])
    assert one == digest({"application_args": ["2024-01-02", "/lake"]}, application_args=[template, "/lake"])
    assert one != digest({"application_args": ["2024-01-02", "/other"]}, application_args=[template, "/other"])


@pytest.mark.parametrize("template", ["{{ params.table }}", "{{ var.value.table }}", "{{ dag_run.conf['table'] }}"])
def test_what_was_chosen_is(template: str) -> None:
    rendered = [{"conf": {"spark.table": value}} for value in ("orders", "customers")]
    assert len({digest(one, conf={"spark.table": template}) for one in rendered}) == 2


@pytest.mark.parametrize(
    "change", [{"application": "other.py"}, {"java_class": "org.Main"}, {"conf": {"a": "1"}}, {"py_files": "lib.zip"}]
)
def test_another_program_is(change: dict[str, Any]) -> None:
    assert digest() != digest(**change)
    assert digest(**change) == digest(**change)


def test_the_content_of_a_program_counts_not_its_time(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text("one")
    first = digest(application=str(program))
    program.write_text("one")
    assert digest(application=str(program)) == first
    program.write_text("two")
    assert digest(application=str(program)) != first


def test_the_modules_and_python_files_of_a_program_count_too(tmp_path: Path) -> None:
    program, beside, library = (tmp_path / name for name in ("job.py", "tables.py", "lib.py"))
    program.write_text("import tables\n")
    arguments = {"application": f"file://{program}", "py_files": str(library)}
    seen = {digest(**arguments)}
    for file, text in ((beside, "NAME = 'a'"), (beside, "NAME = 'b'"), (library, "one"), (library, "two")):
        file.write_text(text)
        seen.add(digest(**arguments))
    assert len(seen) == 5


def test_a_program_elsewhere_is_not_known(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    known = [str(program), f"file:{program}", None, "s3a://bucket/job.py", "local:///opt/job.py"]
    program.write_text("")
    tasks = [LineageSparkSubmitOperator(task_id="load", application=one) for one in known]
    assert [is_known(task) for task in tasks] == [True, True, True, False, False]
