"""What a task submits is the same on another day, and another thing with another program or other arguments."""

from __future__ import annotations

import copy
import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from spark_lineage.adapters.submission_digest import _program, is_known, submission_digest
from spark_lineage.operators.lineage_bash import LineageBashOperator
from spark_lineage.operators.lineage_livy import LineageLivyOperator
from spark_lineage.operators.lineage_spark_pyspark import LineagePySparkOperator
from spark_lineage.operators.lineage_spark_sql import LineageSparkSqlOperator
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


def test_submission_digest_of_exchanged_modules_differs(tmp_path: Path) -> None:
    program, one, other = (tmp_path / name for name in ("job.py", "one.py", "other.py"))
    program.write_text("import one, other")
    one.write_text("TABLE = 'orders'")
    other.write_text("TABLE = 'customers'")
    before = digest(application=str(program))
    one.write_text("TABLE = 'customers'")
    other.write_text("TABLE = 'orders'")
    assert digest(application=str(program)) != before


def test_submission_digest_in_another_directory_is_the_same(tmp_path: Path) -> None:
    with DAG("shop", start_date=datetime(2024, 1, 1, tzinfo=UTC), schedule=None):
        task = LineageSparkSubmitOperator(task_id="load", application="{{ dag.folder }}/job.py")
    digests = set()
    for version in ("one", "other"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "job.py").write_text("import tables")
        (tmp_path / version / "tables.py").write_text("")
        running = copy.copy(task)
        running.application = str(tmp_path / version / "job.py")
        digests.add(_program(running))
    assert len(digests) == 1


def test_submission_digest_of_other_properties_or_connection_differs(tmp_path: Path) -> None:
    properties = tmp_path / "spark.properties"
    seen = {digest(), digest(conn_id="spark_other")}
    for text in ("spark.sql.warehouse.dir /a", "spark.sql.warehouse.dir /b"):
        properties.write_text(text)
        seen.add(digest(properties_file=str(properties)))
    assert len(seen) == 4
    with DAG("shop", start_date=datetime(2024, 1, 1, tzinfo=UTC), schedule=None):
        tasks = [LineageSparkSqlOperator(task_id=f"load{at}", sql="SELECT 1", conf={"a": at}) for at in range(2)]
    assert len(set(map(submission_digest, tasks))) == 2
    assert all(map(is_known, tasks))


def test_submission_digest_of_a_wrapped_function_has_its_file(tmp_path: Path) -> None:
    program = tmp_path / "job.py"

    def task() -> LineagePySparkOperator:
        names: dict[str, Any] = {}
        exec(compile(program.read_text(), program, "exec"), names)  # noqa: S102
        with DAG("shop", start_date=datetime(2024, 1, 1, tzinfo=UTC), schedule=None):
            return LineagePySparkOperator(task_id="load", python_callable=functools.wraps(names["load"])(lambda: 0))

    program.write_text("def load(spark): ...")
    one = task()
    before = submission_digest(one)
    program.write_text("def load(spark): return 1")
    assert submission_digest(task()) != before
    assert is_known(one)


def test_is_known_with_a_program_outside_of_the_digest_is_false(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text("")
    application = str(program)
    with DAG("shop", start_date=datetime(2024, 1, 1, tzinfo=UTC), schedule=None):
        tasks = [
            LineageSparkSubmitOperator(task_id="archive", application=application, py_files="s3a://bucket/lib.zip"),
            LineageLivyOperator(task_id="livy", file="s3a://bucket/job.py"),
            LineageBashOperator(task_id="bash", bash_command=f"spark-submit {application}"),
            LineagePySparkOperator(task_id="partial", python_callable=functools.partial(print, "orders")),
        ]
    assert not any(map(is_known, tasks))
    assert is_known(LineageSparkSubmitOperator(task_id="load", application=application, py_files=f"{application}, "))


def test_a_program_elsewhere_is_not_known(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    known = [str(program), f"file:{program}", "s3a://bucket/job.py", "local:///opt/job.py"]
    program.write_text("")
    tasks = [LineageSparkSubmitOperator(task_id="load", application=one) for one in known]
    assert [is_known(task) for task in tasks] == [True, True, False, False]
