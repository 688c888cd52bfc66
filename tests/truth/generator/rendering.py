"""The Python text of a program, to be read and to be run alone."""

from __future__ import annotations

from collections.abc import Iterator

from generator import writes
from generator.names import query_text
from generator.programs import Program, Step

HEAD = """from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
"""


def text(program: Program) -> str:
    """The program as Python, to be run in a directory that holds ``in``."""
    rendering = _Rendering()
    lines = [line for step in program.steps for line in rendering.of(step)]
    return HEAD + "\n".join(lines) + "\n"


class _Rendering:
    """Knows what is a DataFrame so far, what a view, and what only a query that others take as a CTE."""

    def __init__(self) -> None:
        self._queries: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._views: set[str] = set()
        self._prepared: set[str] = set()

    def of(self, step: Step) -> Iterator[str]:
        """The lines of a step; none where it waits to be a CTE."""
        for line in step.operation.prepare_text(step.arguments):
            if line not in self._prepared:
                yield line
            self._prepared.add(line)
        if step.way == "cte":
            self._queries[step.makes] = (step.operation.sql_text(step.arguments, *step.reads) or "", step.reads)
            return
        for read in step.reads:
            yield from self._as_frame(read)
        if isinstance(step.operation, writes.Write):
            yield from step.operation.lines(step.arguments, step.reads[0])
        elif step.way == "view":
            for read in step.reads:
                yield from self._as_view(read)
            sql = step.operation.sql_text(step.arguments, *step.reads)
            yield f"{step.makes} = spark.sql({query_text(sql)})"
        else:
            yield f"{step.makes} = {step.operation.frame_text(step.arguments, *step.reads)}"

    def _as_frame(self, name: str) -> Iterator[str]:
        """Make a DataFrame of what is only a query so far."""
        if name not in self._queries:
            return
        *ctes, last = self._needed(name)
        for part in (*ctes, last):
            for read in self._queries[part][1]:
                yield from self._as_view(read)
        head = "WITH " + ",\n".join(f"{part} AS ({self._queries[part][0]})" for part in ctes) + "\n" if ctes else ""
        yield f"{name} = spark.sql({query_text(head + self._queries[last][0])})"
        del self._queries[name]

    def _as_view(self, name: str) -> Iterator[str]:
        if name not in self._queries and name not in self._views:
            self._views.add(name)
            yield f'{name}.createOrReplaceTempView("{name}")'

    def _needed(self, name: str) -> list[str]:
        """The queries that one is made from, each before what uses it, and itself last."""
        seen: dict[str, None] = {}

        def visit(each: str) -> None:
            if each in self._queries and each not in seen:
                for read in self._queries[each][1]:
                    visit(read)
                seen[each] = None

        visit(name)
        return list(seen)
