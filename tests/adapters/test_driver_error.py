"""What a program failed of, by what its driver printed and how it exited."""

from __future__ import annotations

import pytest

from spark_lineage.adapters.driver_output import DriverError

ABORTED = "org.apache.spark.SparkException: Job aborted.\nCaused by: java.io.IOException: No space left (exit code 1)"
MEMORY = "java.lang.OutOfMemoryError: Java heap space"
PYTHON = """\
Traceback (most recent call last):
  File "/jobs/orders.py", line 7, in <module>
    raise ValueError("no orders of 2024-01-31")
  File "/spark/pyspark.zip/pyspark/sql/types.py", line 57, in <module>
^^^^^^^^^^~~~~^^
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
LOG = "26/11/21 23:33:27 INFO "
SHUTDOWN = f"""\
{LOG}SparkContext: Invoking stop() from shutdown hook
{LOG}SparkContext: SparkContext is stopping with exitCode 0 from stop at <unknown>:0.
{LOG}MemoryStore: MemoryStore cleared
26/11/21 23:33:28 WARN BlockManager: Putting block rdd_0 failed due to exception
java.io.IOException: Stream closed
\tat org.apache.spark.storage.BlockManager.put(BlockManager.scala:1)
{LOG}ShutdownHookManager: Shutdown hook called
"""
# Each event of the listener may bring it.
WARNING = """\
26/11/21 23:33:27 WARN SparkOpenLineageExtensionVisitorWrapper: An illegal reflective access operation will occur when
This issue arises when the openlineage-spark integration and the Spark connector are loaded using different loaders.
1. Placing both libraries in the /usr/lib/spark/jars directory, or \n\
2. Loading both libraries through the --jars parameter.
"""
CAUGHT = PYTHON.removesuffix(f"{LOG}ShutdownHookManager: Shutdown hook called\n")
LAST = "exit code 1; the last exception in its output: ValueError: no orders of 2024-01-31"
SYNTAX = """\
  File "/jobs/orders.py", line 2
    def broken(:
               ^
SyntaxError: invalid syntax
"""
INDENTATION = """\
  File "/jobs/orders.py", line 2
    x = 1
    ^
IndentationError: expected an indented block after function definition on line 1
"""
GROUP = """\
Traceback (most recent call last):
  File "/jobs/orders.py", line 7, in <module>
    raise KeyError("first")
KeyError: 'first'

During handling of the above exception, another exception occurred:

  + Exception Group Traceback (most recent call last):
  |   File "/jobs/orders.py", line 9, in <module>
  |     raise ExceptionGroup("many", [*errors, ExceptionGroup("inner", [TypeError("t")])])
  | ExceptionGroup: many (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/jobs/orders.py", line 4, in <module>
    |     try: load(x)
    |          ^^^^^^^
    | ValueError: no orders
in a second line
    +---------------- 2 ----------------
    | ExceptionGroup: inner (1 sub-exception)
    +-+---------------- 1 ----------------
      | TypeError: t
      +------------------------------------
    +------------------------------------
"""
MANY = "ExceptionGroup: many (2 sub-exceptions)"


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
        (f'{JVM}Exception in thread "main" java.lang.Error: last', 1, "java.lang.Error: last (exit code 1)"),
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


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (CAUGHT + SHUTDOWN, "ValueError: no orders of 2024-01-31 (exit code 1)"),
        (CAUGHT + WARNING + SHUTDOWN, "ValueError: no orders of 2024-01-31 (exit code 1)"),
        # As Spark Connect has it.
        (
            CAUGHT + "\nJVM stacktrace:\norg.apache.spark.SparkException\n\tat org.apache.spark.Load.main(L.scala)\n",
            "ValueError: no orders of 2024-01-31\n\nJVM stacktrace:\norg.apache.spark.SparkException (exit code 1)",
        ),
        (SYNTAX + SHUTDOWN, "SyntaxError: invalid syntax (exit code 1)"),
        (
            LOG + "SparkContext: Running Spark\n" + INDENTATION,
            "IndentationError: expected an indented block after function definition on line 1 (exit code 1)",
        ),
        (GROUP + SHUTDOWN, f"{MANY} (exit code 1)"),
        (
            CAUGHT.replace("ValueError: no", f"ValueError{LOG}NoOpCircuitBreaker: off\n: no") + SHUTDOWN,
            "ValueError: no orders of 2024-01-31 (exit code 1)",
        ),
        # A program may print such a place itself.
        ('  File "/jobs/orders.py", line 2\nis fine\n', "exit code 1"),
    ],
)
def test_what_python_prints_last_has_ended_the_program(output: str, text: str) -> None:
    assert explained(output, 1) == text


@pytest.mark.parametrize(
    "output",
    [
        f"{CAUGHT}{LOG}FileSourceStrategy: Pushed Filters: \nfalling back to yesterday's\n",
        f"{CAUGHT}{WARNING}{LOG}FileSourceStrategy: Pushed Filters: \nfalling back to yesterday's\n",
        f"{CAUGHT}falling back to yesterday's\nno orders of yesterday either\n",
        f"{CAUGHT}{LOG}SparkContext: Starting job: count at NativeMethodAccessorImpl.java:0\n",
        f"{LOG}SparkContext: Running Spark\n{CAUGHT}2026-11-21 23:33:27,123 INFO orders: falling back to yesterday's\n",
        f"Exception in thread Thread-1 (load):\n{CAUGHT}",
    ],
)
def test_what_the_program_survived_is_not_what_it_failed_of(output: str) -> None:
    assert explained(output + SHUTDOWN, 1).startswith(LAST)
    assert explained(output + SHUTDOWN, 3) == "exit code 3"
    assert explained(output + JVM + SHUTDOWN, 1) == ABORTED
    # What comes after that may have ended it.
    assert explained(output + CHAINED + SHUTDOWN, 1) == "RuntimeError: cannot load (exit code 1)"
    assert explained(output + GROUP + SHUTDOWN, 1) == f"{MANY} (exit code 1)"


def test_a_group_that_was_caught_is_not_what_the_program_failed_of() -> None:
    text = explained(f"{GROUP}nothing was loaded\n{SHUTDOWN}", 1)
    assert text == f"exit code 1; the last exception in its output: {MANY}"


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


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (["Caused by: java.lang.RuntimeException: no space left"], "java.lang.RuntimeException: no space left"),
        (
            [
                "Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.",
                "\t... 1 more",
                "Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):",
                '  File "/jobs/orders.py", line 3, in <lambda>',
                '    bad = f.udf(lambda x: 1 // (x - x), "int")',
                "                          ~~^^~~~~~~~~~",
                "ZeroDivisionError: integer division or modulo by zero",
                "",
                "\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:572)",
            ],
            "ZeroDivisionError: integer division or modulo by zero",
        ),
    ],
)
def test_what_spark_3_5_prints_of_a_failed_task(cause: list[str], told: str) -> None:
    """It converts no exception of a task: the JVM's stack traces follow Python's."""
    error = DriverError()
    for line in (
        "Traceback (most recent call last):",
        '  File "/jobs/orders.py", line 7, in <module>',
        "py4j.protocol.Py4JJavaError: An error occurred while calling o40.parquet.",
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times",
        "\tat org.apache.spark.util.Utils.run(Utils.scala:1)",
        *cause,
        "\t... 12 more",
        "",
        "Driver stacktrace:",
        "\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)",
    ):
        error.feed(line)
    assert error.explain(1) == (
        "py4j.protocol.Py4JJavaError: An error occurred while calling o40.parquet.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times\n"
        f"Caused by: {told} (exit code 1)"
    )
