"""Puts together what one plan says: its command, what it reads, what it writes, and the edges between the columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from msgspec import structs

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import SchemaField
from spark_lineage.merge.observed import LINES, Edge, Observed, by_name
from spark_lineage.merge.partitions import column_value
from spark_lineage.naming.identity import DatasetName, directories_above
from spark_lineage.plans import kafka
from spark_lineage.plans.answers import DELTA_STATE, delta_answer
from spark_lineage.plans.commands import (
    CLONE,
    DELTA,
    TAKEN_OVER,
    UNNAMED_TARGET,
    Command,
    command_node,
    described,
    moved,
    read_command,
    several_commands,
    staged,
    taking_over,
    unwrapped,
)
from spark_lineage.plans.event_log_lines import Source
from spark_lineage.plans.lists import arguments, outputs
from spark_lineage.plans.names import Names, hidden, plain
from spark_lineage.plans.operators import trace
from spark_lineage.plans.plan import Node, Plan, parse_plan
from spark_lineage.plans.predicates import UnreadableError
from spark_lineage.plans.rdds import NO_ROWS, ROWS_OF_PROGRAM, Rows, Scans, scans_of
from spark_lineage.plans.row_changes import HUDI_MERGE, ROW_COMMANDS, hudi_merged, merged, written
from spark_lineage.plans.scope import UNTRACED, Read, Sources, Traced
from spark_lineage.plans.statements import is_read, read_statement
from spark_lineage.plans.tables import (
    Tables,
    change_feeds,
    complete_locations,
    is_log_of_table,
    path_name,
    read_by,
    read_leaf,
)

# The dataset that is read inside of these is the table itself: they change its rows, or look after its files.
_LOOKING_AFTER = ("AnalyzeColumnCommand", "AnalyzeTableCommand", "OptimizeTableCommand", "VacuumTableCommand")
# No evidence has more than the top of the query of a write to a table of a JDBC catalog (``AppendDataExecV1.query``).
_LEFT_OUT = re.compile(r"\w+ JDBCTable\(.*\), (?!LocalRelation|LocalTableScan)[A-Z]\w+ ", re.DOTALL)
_CLOSED = frozenset({*ROW_COMMANDS, HUDI_MERGE, *_LOOKING_AFTER})
# The job of a commit has this description (SparkRDDWriteClient.commitStats).
_HUDI_COMMIT = re.compile(r"SparkRDDWriteClient:Committing stats: (?P<table>\S+)")
_MERGES = frozenset({"MergeIntoCommand", HUDI_MERGE})
# This command also appends to a table that is there: the write inside of it overwrites where it makes the table.
_SAVE_AS_TABLE = "CreateDataSourceTableAsSelectCommand"
_SAVE = "SaveIntoDataSourceCommand"
_MAKING = frozenset({"CREATE", "OVERWRITE"})
_STREAM_WRITE = "WriteToDataSourceV2"
_OUTPUT_MODES = frozenset({"append", "complete", "update"})
# Columns of Delta's AddFile and IndexedFile.
_ACTIONS = (frozenset({"dataChange", "partitionValues"}), frozenset({"add", "remove", "cdc", "isLast"}))
_ID = re.compile(r"#(\d+)")
_DELTA_CATALOG = re.compile(
    r"org\.apache\.spark\.sql\.delta\.catalog\.DeltaCatalog@.*TableSpec\(.*?Some\(delta\)", re.DOTALL
)
_LITERAL = re.compile(r"(?!null\Z)[\w.:+-]+(?: [\w.:+-]+)*")
_EXISTING_RDD = "Scan ExistingRDD"
_VALUE = hidden("value")
# A glob begins here; the files that it matches lie in the directory before it (Hadoop's GlobPattern).
_GLOB = re.compile(r"/[^/]*[*?\[{].*", re.DOTALL)
# Spark 3.5 names a sink as the program did, which may be a relative path.
_PLACE = re.compile(
    r"(?:(?:Delta|File)Sink\[(?P<sink>.+)|\w*(?:Source|Sink)\[(?P<place>/.*|[a-z][a-z0-9]*:/.*))\]", re.DOTALL
)


@dataclass(frozen=True)
class PlanContent:
    """What a plan says; ``traced`` are the columns that it gives out, which are what it writes if it writes.

    A command whose data is the query of an execution inside of it has no columns of its own.
    """

    command: Command = field(default_factory=Command)
    inputs: tuple[Observed, ...] = ()
    traced: Traced = UNTRACED
    merge: str = ""
    """The arguments of a MERGE: one of Delta names the columns that other executions give out."""
    statement: CatalogStatement | None = None
    is_of_batch: bool = False
    """Whether it reads what the micro-batch around it was given."""
    alone: Traced = UNTRACED
    """The columns without those of the micro-batch, where it reads that."""
    parts: tuple[PlanContent, ...] = ()
    """The commands of one that has several: Hive's multi-insert."""
    ids: frozenset[int] = frozenset()
    """The attributes that a command names: those of the query among them that an execution inside of it runs."""
    unread: tuple[str, ...] = ()
    """The operators and commands in it that no rule reads."""
    output_mode: str = ""
    """The output mode of the streaming query that it is a batch of, if an aggregation has it."""
    is_of_log: bool = False
    """Whether it reads the log that Delta keeps of a table."""
    scans: Scans = field(default_factory=dict)
    """The datasets that it reads by the names of its scans."""
    has_rows_of_program: bool = False
    """Whether it reads RDDs of the program, whose sources only its jobs name."""
    rows: Rows = NO_ROWS
    """Where the rows of these RDDs come from."""
    is_of_delta: bool = False
    """Whether its command makes or replaces a table of Delta."""
    states: frozenset[tuple[DatasetName, str]] = frozenset()
    """The versions of Delta's tables of which it reads the state or changes the rows."""
    literals: Mapping[int, str] = field(default_factory=dict)
    """The values of the attributes that are the same in all rows."""
    moved: tuple[Observed, str] | None = None
    """The table of which a call makes another snapshot the current one, and what is counted of it."""
    feeds: frozenset[DatasetName] = frozenset()
    """The tables whose change feed it reads."""

    def moves(self, written: Collection[DatasetName]) -> tuple[str, ...]:
        """Return what is counted of a call that takes one of the tables that were written to another of its states."""
        return () if self.moved is None or self.moved[0].dataset not in written else self.moved[1:]

    @property
    def is_bookkeeping(self) -> bool:
        """Whether it reads what Delta keeps in its log, or gives that out."""
        names = {column.name for column in self.traced.columns}
        return self.is_of_log or any(actions <= names for actions in _ACTIONS)

    @property
    def is_whole(self) -> bool:
        """Whether all columns that it writes were traced to datasets that its plan names."""
        return all(part.is_whole for part in self.parts) if self.parts else self.traced.is_whole

    @property
    def constants(self) -> tuple[str, ...]:
        """The columns that have one value in all rows that it writes: ``("day=1",)``."""
        columns = ((column.name, self.literals.get(column.id)) for column in self.traced.columns)
        return tuple(column_value(name, value) for name, value in columns if value is not None)

    @property
    def outputs(self) -> tuple[Observed, ...]:
        """What it writes, with edges."""
        outputs = tuple(output for part in self.parts for output in part.outputs)
        command, target = self.command, self.command.target
        if target is None:
            return outputs
        if command.mode == "Overwrite":
            target = structs.replace(target, lifecycles=frozenset({"OVERWRITE"}))
        elif self.statement is not None and self.statement.change in _MAKING:
            target = structs.replace(target, lifecycles=frozenset({self.statement.change}))
        elif command.name == _SAVE_AS_TABLE:
            target = structs.replace(target, lifecycles=frozenset({"CREATE"}))
        return (*outputs, with_edges(target, self.traced))

    def committed(self, job: str, tables: Tables) -> PlanContent:
        """A MERGE of Hudi with its table, which no plan names, when one of its jobs is described as the commit.

        The description has the name of the table alone: the log must name just one of that name.
        """
        is_open = self.command.name == HUDI_MERGE and self.command.target is None
        match = _HUDI_COMMIT.match(job) if is_open else None
        target = tables.the_only(match["table"]) if match else None
        if target is None:
            return self
        traced = hudi_merged(self.merge, target.dataset)
        return replace(self, command=replace(self.command, target=target), inputs=(target,), traced=traced, unread=())

    def without_batch(self) -> PlanContent:
        """Return what a plan says of which an RDD is not, or not alone, what the micro-batch was given."""
        return replace(self, traced=self.alone, is_of_batch=False) if self.is_of_batch else self

    def fed(self, rows: Rows) -> PlanContent:
        """Return what a plan says together with the rows of RDDs that its jobs read."""
        if not rows.is_of_dataset:
            return self
        return replace(self, inputs=by_name([*self.inputs, *rows.reads]), rows=self.rows | rows)

    def completed(self, inside: Sequence[PlanContent], names: Names) -> PlanContent:
        """Return what a command says together with the executions inside of it, in their order.

        :param names: of the attributes of the application, also of those that the executions inside have shown
        """
        command = self.command
        if command.target is not None and command.target.dataset == UNNAMED_TARGET:
            return self._on_target({read.dataset for content in inside for read in content.inputs})
        places = [each.command.target for each in inside if each.command.target is not None]
        if command.target is not None and command.name.endswith("AsSelectCommand") and len(places) == 1:
            # It names the table alone, the write inside of it the place.
            command = replace(command, target=structs.replace(command.target, dataset=places[0].dataset))
        reading = (each for each in inside if each.command.has_data and (each.inputs or each.is_of_batch))
        queries = [each for each in reading if not each.is_bookkeeping]
        if command.has_data or command.name in _CLOSED or not queries:
            return self
        rows = reduce(or_, (content.rows for content in queries), self.rows)
        # A query that writes by itself has the columns.
        has_rows = any(content.has_rows_of_program and content.command.target is None for content in queries)
        # The query that it writes is known by the share of its columns that the command names: sources run others, such
        # as Delta to find the files of its change feed.
        named = {id(each): [column.id in self.ids for column in each.traced.columns] for each in queries}
        own = max(queries, key=lambda each: sum(named[id(each)]) / max(len(named[id(each)]), 1))
        unread = self.unread
        # The plan that was run names the datasets that a logical relation leaves unnamed.
        known = [read for read in self.inputs if read.dataset.namespace or not own.is_whole]
        inputs = by_name([*known, *(read for content in queries for read in content.inputs)])
        traced = own.traced
        if self.merge and command.target is not None:
            within = [content.traced for content in inside]
            traced = replace(merged(self.merge, command.target.dataset, traced, names, within), is_cut=traced.is_cut)
            # The columns of an RDD are counted as such.
            unread += () if any(content.has_rows_of_program for content in inside) else traced.unread
        whole = replace(self, command=command, inputs=inputs, traced=traced, rows=rows, unread=unread)
        return replace(whole, has_rows_of_program=has_rows, literals=own.literals)

    def _on_target(self, read: set[DatasetName]) -> PlanContent:
        """Return what a command does to the only dataset that executions inside of it read."""
        if len(read) != 1:
            return PlanContent(replace(self.command, target=None), unread=self.unread)
        (place,) = read
        target = Observed(place)

        def renamed(sources: Sources) -> Sources:
            return frozenset((place if name == UNNAMED_TARGET else name, field, how) for name, field, how in sources)

        command, traced = replace(self.command, target=target), self.traced.with_sources(renamed)
        return replace(self, command=command, inputs=(target,), traced=traced)


def with_edges(target: Observed, traced: Traced) -> Observed:
    """Return an output with its columns, whose types plans do not have, and the edges that lead to it.

    Of a plan that is cut the edges are true, and the columns are not all.
    """
    edges: set[Edge] = {(None, *source) for source in traced.dataset_wide}
    edges.update((column.name, *source) for column in traced.columns for source in column.sources)
    schema = () if traced.is_cut else tuple(SchemaField(column.name) for column in traced.columns)
    return structs.replace(target, schema=schema, edges=frozenset(edges))


def read_plan(
    text: str,
    tables: Tables,
    batch: Traced,
    configs: Mapping[str, str],
    located: Collection[str] = (),
    *,
    root_id: int = -1,
) -> PlanContent:
    """Read the formatted text of a plan.

    ``batch`` is what the micro-batch gives out that it may be run by, ``configs`` what the session has set, ``located``
    the locations of several paths, of which the text has the first alone. Of the executions inside
    of that with ``root_id`` some have what a source answers another by.
    """
    plan = parse_plan(text, tables.names)
    if plan is None:
        return PlanContent()
    complete_locations(plan, located)
    tables.answers.find(plan, root_id, lambda: {one.dataset for one in read_by(plan, tables)})
    name, command_text = described(plan)
    is_of_delta = name == CLONE or bool(_DELTA_CATALOG.match(command_text))
    states, feeds = _states(plan, command_text, tables), change_feeds(plan, tables)
    content = replace(_read(plan, tables, batch, configs), states=states, is_of_delta=is_of_delta, feeds=feeds)
    call = moved(plan, tables) if plan.root.name == "Call" else None
    content = replace(content, unread=(*content.unread, *staged(content.command, configs)), moved=call)
    if answer := delta_answer(plan, content.traced, tables.at):
        tables.answers.add(root_id, answer)
    return content


def _read(  # noqa: PLR0911 - a case for each kind of command
    plan: Plan, tables: Tables, batch: Traced, configs: Mapping[str, str]
) -> PlanContent:
    command = read_command(plan, tables, configs)
    if command is None:
        parts = tuple(_read(part, tables, batch, configs) for part in several_commands(plan))
        if not parts:
            return _query(plan, tables, batch)
        unread = tuple(name for part in parts for name in part.unread)
        return PlanContent(inputs=by_name(read for part in parts for read in part.inputs), parts=parts, unread=unread)
    try:
        statement = read_statement(plan, tables)
    except UnreadableError as error:
        return PlanContent(replace(command, target=None), unread=(str(error),))
    data = _kafka_data(plan)
    if command.has_data or data:
        command = replace(command, has_data=True)
        content = _query(Plan(data, plan.subqueries) if data else plan, tables, batch, command.sorted_by)
        traced = written(*described(plan), command.target, content.traced)
        return replace(content, command=command, traced=traced, statement=statement)
    merge = plan.arguments_of(command.name) if command.name in _MERGES else ""
    if command.target is None:
        # The query that defines a view is not read.
        unread = () if is_read(command.name) else (command.name,)
        if _LEFT_OUT.match(f"{command.name} {described(plan)[1]}"):
            unread = (f"{command.name}: its query",)
        return PlanContent(command, merge=merge, statement=statement, unread=unread)
    inputs = by_name(read_by(plan, tables))
    if command.name in ROW_COMMANDS:
        target = command.target.dataset
        changed = Observed(target, command.target.symlinks)
        # A relation of a logical plan has the table's name alone.
        inputs = tuple(one for one in inputs if one.symlinks.isdisjoint(changed.symlinks))
        traced = replace(ROW_COMMANDS[command.name](plan, target), is_cut=any(node.is_cut for node in plan.walk()))
        return PlanContent(command, by_name([*inputs, changed]), traced, unread=(*plan.unread, *traced.unread))
    if command.name == CLONE:
        return PlanContent(command, statement=statement, unread=(f"{CLONE}: the table that it clones",))
    named = (_ID.findall(text) for node in plan.walk() for text in node.fields.values())
    ids = frozenset(int(each) for found in named for each in found)
    return PlanContent(command, inputs, merge=merge, statement=statement, ids=ids)


def _query(plan: Plan, tables: Tables, batch: Traced, sorted_by: frozenset[int] = frozenset()) -> PlanContent:
    if (command := taking_over(plan, tables)) is not None:
        return PlanContent(command, unread=(TAKEN_OVER,))
    traced = _traced(plan, tables, batch, sorted_by)
    is_of_batch = bool(batch.columns) and any(node.name == _EXISTING_RDD for node in plan.walk())
    alone = _traced(plan, tables, UNTRACED, sorted_by) if is_of_batch else UNTRACED
    if is_of_batch:
        traced = replace(traced, dataset_wide=traced.dataset_wide | batch.dataset_wide)
    # A command of a v2 catalog stands at the root without a query.
    unread = tuple(name for name in traced.unread if not is_read(name))
    reads, scans = scans_of((node for node in plan.walk() if not node.children), tables)
    inputs = by_name(reads)
    if _is_inference(plan):
        inputs = tuple(structs.replace(read, schema=LINES) for read in inputs)
    return PlanContent(
        inputs=inputs,
        traced=traced,
        is_of_batch=is_of_batch,
        alone=alone,
        unread=unread,
        output_mode=_output_mode(plan),
        is_of_log=any(is_log_of_table(node) for node in plan.walk() if not node.children),
        scans=scans,
        has_rows_of_program=any(node.name.strip() in ROWS_OF_PROGRAM for node in plan.walk()),
        literals=_literals(plan.root),
    )


def _states(plan: Plan, command_text: str, tables: Tables) -> frozenset[tuple[DatasetName, str]]:
    """Return the versions of Delta's tables of which a plan reads the state, or that its command changes."""
    leaves = (DELTA_STATE.fullmatch(node.name) for node in plan.walk() if not node.children)
    found = (match for match in (*leaves, *DELTA.finditer(command_text)) if match)
    # A table that is not there yet has the version -1.
    return frozenset(
        (tables.at(match["location"]).dataset, match["version"]) for match in found if match["version"][0] != "-"
    )


def _literals(node: Node) -> dict[int, str]:
    """Return the literals that projections give out, from the root down to where rows come together."""
    found: dict[int, str] = {}
    while len(node.planned) == 1:
        for element in outputs(node.fields.get("Output", ""), node.sizes.get("Output")) or ():
            if element.expression is not None and _LITERAL.fullmatch(plain(element.expression)):
                found[element.id] = plain(element.expression)
        (node,) = node.planned
    return found


def _kafka_data(plan: Plan) -> Node | None:
    """Return the logical plan of what a command writes to Kafka, which no execution inside of it has."""
    logical = next((node for node in plan.root.walk() if node.name == _SAVE and node.children), None)
    return logical.children[0] if logical and kafka.is_written(logical.fields.get("Arguments", "")) else None


def _traced(plan: Plan, tables: Tables, batch: Traced, sorted_by: frozenset[int]) -> Traced:
    def leaf(node: Node) -> Read:
        if node.name == _EXISTING_RDD:
            # Code made the rows, of which no column is known; in a micro-batch they are those that it was given.
            return Read([column.sources for column in batch.columns], is_whole=bool(batch.columns))
        return read_leaf(node, tables)

    root = unwrapped(plan.root)
    # JDBC writes through the turning of rows into objects.
    is_of_objects = root.name == "DeserializeToObject" and root.children
    data = replace(plan, root=root.children[0]) if is_of_objects else plan
    traced = trace(data, leaf, tables.subqueries, sorted_by)
    # The texts that a command prints of itself besides, such as the names of its columns, are not traced.
    command = command_node(plan)
    is_cut = any(node.is_cut for node in plan.walk() if node is not command)
    return replace(traced, is_cut=True, is_whole=False) if is_cut else traced


def _is_inference(plan: Plan) -> bool:
    """Whether it may be Spark's schema inference for CSV: the first line that is not blank, or all lines as texts."""
    root, leaf = unwrapped(plan.root), list(plan.walk())[-1]
    if root.name == "CollectLimit":
        is_alike = any(f"length(trim({_VALUE}#" in node.fields.get("Condition", "") for node in plan.walk())
    else:
        is_alike = root.name == "DeserializeToObject" and f"invoke({_VALUE}#" in root.fields.get("Arguments", "")
    return is_alike and leaf.name.strip() == "Scan text"


def _output_mode(plan: Plan) -> str:
    """The mode that a streaming aggregation is saved in; in Spark 3.5 a plan made for printing has a false one."""
    saved = (node.fields.get("Arguments", "") for node in plan.walk() if node.name.endswith("StateStoreSave"))
    modes = (part.lower() for text in saved if "checkpoint = <unknown>" not in text for part in arguments(text))
    return next((mode for mode in modes if mode in _OUTPUT_MODES), "")


def streamed(
    content: PlanContent, sources: Sequence[Source], sink: str, tables: Tables
) -> tuple[tuple[Observed, ...], tuple[Observed, ...]]:
    """Return the inputs and outputs of a micro-batch, or of an execution inside of one.

    Its plan names the single files that it reads, the query's source the directory that they are in; and its plan is a
    query, whose columns the sink writes. Of Kafka its plan has neither topics nor the sink.
    """
    places = (_described(_GLOB.sub("]", source.description)) for source in sources)
    directories = [path_name(place) for place in places if place]
    written_to, outputs = _described(sink), content.outputs
    if not content.command.name and (written_to or kafka.is_sink(sink)):
        target = tables.at(written_to) if written_to else Observed(kafka.UNNAMED_SINK)
        outputs = (with_edges(target, content.traced),)
    named = {name for output in outputs for _, name, *_ in output.edges}.union(one.dataset for one in content.inputs)
    topics = kafka.stream_topics(named, sources)

    def lifted(name: DatasetName) -> Sequence[DatasetName]:
        for directory in directories:
            name = directory if directory in directories_above(name) else name
        return topics.get(name, (name,))

    edges = (
        frozenset((column, new, *how) for column, name, *how in output.edges for new in lifted(name))
        for output in outputs
    )
    inputs = [structs.replace(one, dataset=name) for one in content.inputs for name in lifted(one.dataset)]
    if content.is_of_batch:
        # The execution reads the rows that the micro-batch around it was given.
        inputs += (Observed(topic) for name in named for topic in topics.get(name, ()))
    subscribed = kafka.subscriptions(sources)
    return (
        by_name(structs.replace(one, subscription=subscribed.get(one.dataset)) for one in inputs),
        tuple(structs.replace(output, edges=each) for output, each in zip(outputs, edges, strict=True)),
    )


def stream_command(outputs: Iterable[Observed]) -> str:
    """Return the command of a micro-batch that writes to a sink without a name, empty for others."""
    return _STREAM_WRITE if any(output.dataset == kafka.UNNAMED_SINK for output in outputs) else ""


def _described(description: str) -> str:
    match = _PLACE.fullmatch(description)
    return match["sink"] or match["place"] if match else ""
