"""Measures how an event is cut to its limit against one encoding of the full event, as ``pairs.py`` does.

The task has 30,000 outputs with 100,000 columns, each column made from one of three inputs: some 70 MB of JSON.

- ``encode_vs_cut``: time to encode the full event, divided by the time to cut it to 1 MB (goal: at least 0.33)
- ``encode_vs_late_cut``: the same where the time of the task is over (goal: at least 1)
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pairs import Taken, by_turns, parser, timed

from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES, cut
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.merge.lineage import (
    IDENTITY,
    ColumnLineage,
    DatasetLineage,
    InputField,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    TaskLineage,
)
from spark_lineage.naming.identity import DatasetName

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent

INPUTS = 3


def task(outputs: int, columns: int) -> TaskLineage:
    """Return the lineage of a task with so many outputs, which have so many columns together."""
    names = [f"column_{number}" for number in range(columns // outputs + 1)]
    inputs = [table(f"source_{number}", names) for number in range(INPUTS)]
    # The last columns are those of the first outputs.
    widths = [columns // outputs + (number < columns % outputs) for number in range(outputs)]
    written = [output(f"table_{at:05d}", names[:width], inputs[at % INPUTS]) for at, width in enumerate(widths)]
    return TaskLineage("COMPLETE", inputs=tuple(inputs), outputs=tuple(written))


def table(name: str, columns: list[str]) -> DatasetLineage:
    """Return a table with columns of text."""
    return DatasetLineage(
        DatasetName("s3://warehouse", f"shop.db/{name}"),
        schema=tuple(SchemaField(column, "string") for column in columns),
        symlinks=(Symlink("hive://metastore:9083", f"shop.{name}", "TABLE"),),
        storage=Storage("hive", "parquet"),
        statistics=Statistics(1, 2, 3),
    )


def output(name: str, columns: list[str], source: DatasetLineage) -> DatasetLineage:
    """Return a table each of whose columns is one of its source."""
    one = table(name, columns)
    edges = tuple((column, (InputField(source.dataset, column, (IDENTITY,)),)) for column in columns)
    return DatasetLineage(
        one.dataset,
        one.schema,
        one.symlinks,
        one.storage,
        statistics=one.statistics,
        column_lineage=ColumnLineage(edges),
        lifecycle="CREATE",
        fed_by=(source.dataset,),
    )


def fresh(event: RunEvent) -> RunEvent:
    """Return an event that can be cut: what is cut are the maps of facets alone."""
    made = copy.copy(event)
    made.run, made.job = copy.copy(event.run), copy.copy(event.job)
    made.inputs, made.outputs = [*map(copy.copy, event.inputs or ())], [*map(copy.copy, event.outputs or ())]
    owners: tuple[Any, ...] = (made.run, made.job, *made.inputs, *made.outputs)
    for one in owners:
        one.facets = dict(one.facets or {})
    for read in made.inputs:
        read.inputFacets = dict(read.inputFacets or {})
    for written in made.outputs:
        written.outputFacets = dict(written.outputFacets or {})
    return made


def main() -> None:
    """Print the figures."""
    asked = parser(__doc__, rounds=6).parse_args()
    run_id = "00000000-0000-0000-0000-000000000000"
    event = run_event(task(30_000, 100_000), None, job_namespace="airflow", job_name="dag.task", run_id=run_id)

    def cutting(deadline: Callable[[], Deadline]) -> Taken:
        made = fresh(event)
        return timed(lambda: cut(made, DEFAULT_LIMIT_BYTES, deadline=deadline()))

    runs = {
        "encode": lambda: timed(to_json, event),
        "cut": lambda: cutting(Deadline),
        "late_cut": lambda: cutting(lambda: Deadline(0)),
    }
    found = by_turns(runs, asked)
    found.compare("encode_vs_cut", "encode", "cut")
    found.compare("encode_vs_late_cut", "encode", "late_cut")
    found.show_numbers()


if __name__ == "__main__":
    main()
