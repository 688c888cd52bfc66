"""An execution that has started, with what its jobs have shown so far."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from msgspec import structs

from spark_lineage.merge.execution import CatalogStatement, Execution
from spark_lineage.merge.lineage import Statistics
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.accounting import Account
from spark_lineage.plans.commands import CLONE
from spark_lineage.plans.content import PlanContent
from spark_lineage.plans.event_log_lines import JobStart
from spark_lineage.plans.rdds import NO_ROWS, RddRows, Rows, newest_values
from spark_lineage.plans.tables import path_name

_ONE_PATH = re.compile(r"\w+\(1 paths\)\[(?P<path>.*)\]", re.DOTALL)


@dataclass
class Running:
    """An execution that has started: what is known of it, its plan, and those inside of it.

    ``content`` is what counts of its plan, ``printed`` all of it, ``account`` its leaves and writes; ``rows`` are those
    of RDDs that its jobs read.
    """

    known: Execution
    content: PlanContent
    printed: PlanContent
    account: Account
    rows: Rows = NO_ROWS
    inside: list[Running] = field(default_factory=list)
    states: Collection[tuple[DatasetName, str]] = ()
    """The versions of Delta's tables of which executions of the same root read the state."""
    metrics: dict[int, str] = field(default_factory=dict)
    """Which number of ``written`` an accumulator holds."""
    written: dict[str, int] = field(default_factory=dict)
    scans: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Which number of ``found`` an accumulator holds, by the location of a scan."""
    found: dict[str, dict[str, int]] = field(default_factory=dict)
    newest_values: int = -1
    """The id of the last RDD that its jobs have run and that holds values of the program."""

    def measure(self, accumulators: Iterable[tuple[int, int]]) -> None:
        """Note what the driver counted of files that were read and written."""
        for accumulator, value in accumulators:
            if accumulator in self.metrics:
                self.written[self.metrics[accumulator]] = value
            elif accumulator in self.scans:
                location, number = self.scans[accumulator]
                numbers = self.found.setdefault(location, {})
                numbers[number] = max(value, numbers.get(number, 0))

    def with_found(self, inputs: tuple[Observed, ...]) -> tuple[Observed, ...]:
        """Return inputs with what scans found at the only path that they read; a batch of a stream adds to others."""
        located = ((_ONE_PATH.fullmatch(location), numbers) for location, numbers in self.found.items())
        found = {path_name(match["path"]): Statistics(**numbers) for match, numbers in located if match}
        if not found or self.known.query_id:
            return inputs
        return tuple(structs.replace(read, statistics=found.get(read.dataset.whole)) for read in inputs)

    @property
    def whole(self) -> PlanContent:
        """All that its plan says, with the rows of RDDs."""
        return self.printed.fed(self.rows)

    def feed(self, rdds: RddRows, job: JobStart, root: Running) -> None:
        """Note where the rows of RDDs come from that a job reads.

        :param root: the execution that this one is part of
        """
        plan = self.printed
        self.newest_values = max(self.newest_values, newest_values(job))
        if not job.is_of_stream:
            self.rows |= rdds.of_execution(job, plan.scans, has_rows_of_program=plan.has_rows_of_program)
            return
        rows, is_of_batch = rdds.of_batch(job, plan.scans)
        if rows.reads and root is not self:
            self.content, self.printed = self.content.without_batch(), plan.without_batch()
            rows |= Rows(frozenset(root.printed.inputs)) if is_of_batch else NO_ROWS
        self.rows |= rows


def with_versions(
    inputs: tuple[Observed, ...], outputs: tuple[Observed, ...], states: Collection[tuple[DatasetName, str]]
) -> tuple[Observed, ...]:
    """Return inputs with the versions of Delta's tables that were read; what is written as well is read before that."""
    written = {output.dataset.whole for output in outputs}
    versions: dict[DatasetName, set[str]] = {}
    for name, version in states:
        versions.setdefault(name, set()).add(version)
    versions |= {name: {min(found, key=int)} for name, found in versions.items() if name in written}
    return tuple(
        structs.replace(read, versions=frozenset(found)) if (found := versions.get(read.dataset.whole)) else read
        for read in inputs
    )


def target_versions(outputs: tuple[Observed, ...], states: Collection[tuple[DatasetName, str]]) -> tuple[str, ...]:
    """Return the version of the only table of Delta that is written of which the state was looked up before that."""
    written = {output.dataset.whole for output in outputs}
    found = [version for name, version in states if name in written]
    return (min(found, key=int),) if len(written) == 1 and found else ()


def made(
    content: PlanContent,
    outputs: tuple[Observed, ...],
    touched: Collection[DatasetName],
    states: Collection[tuple[DatasetName, str]],
) -> tuple[CatalogStatement | None, tuple[Observed, ...]]:
    """Return what a command does to the catalog, and its outputs: OR REPLACE makes a table of Delta that was not there.

    It reads the state of one that is there, unless the application has it; of a clone it reads the first one as well.
    """
    statement = content.statement
    first = "0" if content.command.name == CLONE else ""
    known = {*touched, *(name for name, version in states if version != first)}
    is_there = any(output.dataset in known for output in outputs)
    if statement is None or statement.change != "OVERWRITE" or not content.is_of_delta:
        return statement, outputs
    statement = structs.replace(statement, is_conditional=False)
    if is_there:
        return statement, outputs
    new = tuple(structs.replace(one, lifecycles=frozenset({"CREATE"})) for one in outputs)
    return structs.replace(statement, change="CREATE"), new


def unread_columns(content: PlanContent, outputs: tuple[Observed, ...]) -> tuple[str, ...]:
    """Return that the columns of outputs have no edges where their rows went through an RDD of the program."""
    is_unread = bool(outputs) and content.has_rows_of_program and content.rows.is_of_dataset
    return ("Scan ExistingRDD: its columns",) if is_unread else ()
