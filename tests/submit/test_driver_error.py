"""What a program failed of, by what its driver printed and how it exited."""

from __future__ import annotations

import pytest

from spark_lineage.submit.driver_error import DriverError

ABORTED = "org.apache.spark.SparkException: Job aborted.\nCaused by: java.io.IOException: No space left (exit code 1)"
MEMORY = "java.lang.OutOfMemoryError: Java heap space"
PYTHON = """\
Traceback (most recent call last):
  File "/jobs/orders.py", line 7, in <module>
    raise ValueError("no orders of 2024-01-31")
ValueError: no orders of 2024-01-31
26/11/21 23:33:27 INFO ShutdownHookManager: Shutdown hook called
"""
CHAINED = """\
Traceback (most recent call last):
  File "/jobs/orders.py", line 7, in <module>
    load()
KeyError: 'day'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/jobs/orders.py", line 9, in <module>
    raise RuntimeError("cannot load") from None
RuntimeError: cannot load
"""
WORKER = """\
Traceback (most recent call last):
  File "/jobs/orders.py", line 7, in <module>
    frame.collect()
pyspark.errors.exceptions.captured.PythonException: \n  An exception was thrown from the Python worker.
Traceback (most recent call last):
  File "/spark/worker.py", line 1, in main
ZeroDivisionError: division by zero
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
\tat org.apache.spark.api.python.PythonUDFRunner$$anon$2.read(PythonUDFRunner.scala:94)
"""
ANALYSIS = """\
Traceback (most recent call last):
  File "/jobs/orders.py", line 7, in <module>
    spark.table("missing")
pyspark.errors.exceptions.captured.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table `missing` cannot be found.
If you did not qualify the name with a schema, verify the current_schema() output. SQLSTATE: 42P01;
'UnresolvedRelation [missing], [], false

2026-11-21T23:33:27 INFO something
"""
JVM = """\
Exception in thread "main" org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.jobAbortedError(QueryExecutionErrors.scala:1)
Caused by: java.lang.IllegalStateException: first
\tat Load.main(Load.java:12)
Caused by: java.io.IOException: No space left
\t... 12 more
"""


def explained(output: str, exit_code: int | None) -> str:
    error = DriverError()
    for line in output.splitlines(keepends=True):
        error.feed(line)
    return error.explain(exit_code)


@pytest.mark.parametrize(
    ("output", "exit_code", "text"),
    [
        (PYTHON, 1, "ValueError: no orders of 2024-01-31 (exit code 1)"),
        (CHAINED, 1, "RuntimeError: cannot load (exit code 1)"),
        (WORKER, 1, "ZeroDivisionError: division by zero (exit code 1)"),
        (JVM, 1, ABORTED),
        (PYTHON + JVM, 1, "ValueError: no orders of 2024-01-31 (exit code 1)"),
        # The program caught and printed that, and went on.
        (PYTHON, 3, "exit code 3"),
        (PYTHON, 0, ""),
        ("", 1, "exit code 1"),
        ("", -9, "spark-submit was killed by SIGKILL, exit code -9"),
        ("", 137, "the driver was killed by SIGKILL, exit code 137"),
        ("", 143, "the driver was killed by SIGTERM, exit code 143"),
        ("", 52, "exit code 52: java.lang.OutOfMemoryError"),
        ("", 255, "exit code 255"),
        (f"Terminating due to {MEMORY}", 3, f"{MEMORY} (exit code 3)"),
        ("", None, "the exit code is not known"),
        (PYTHON, None, "ValueError: no orders of 2024-01-31 (the exit code is not known)"),
    ],
)  # fmt: skip
def test_the_best_source_explains_the_end(output: str, exit_code: int | None, text: str) -> None:
    assert explained(output, exit_code) == text


def test_a_message_of_several_lines_ends_where_the_log_goes_on() -> None:
    text = explained(ANALYSIS, 1)
    assert text.startswith("pyspark.errors.exceptions.captured.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]")
    assert text.endswith("'UnresolvedRelation [missing], [], false (exit code 1)")


def test_output_without_end_takes_no_memory() -> None:
    error = DriverError()
    error.feed("Traceback (most recent call last):")
    error.feed("ValueError: " + "x" * 100_000)
    for _ in range(1_000):
        error.feed("y" * 1_000)
    assert len(error.explain(1)) < 2_100
