"""The runs of a task as all evidence has them: corrected by Spark's event log, well named, and without noise (M10).

Corrected is also what the listener names wrongly: tables of Derby, snapshots of Iceberg, aggregates that a source made.
Noise is what the listener names that is no dataset of its own: schema reading, bookkeeping, and parts of others.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import islice

from msgspec import structs

from spark_lineage.merge.correction import (
    corrected,
    matched,
    places_of,
    run_of,
    said_once,
    with_declared_names,
    with_names,
)
from spark_lineage.merge.event import METADATA_TABLE
from spark_lineage.merge.execution import NO_EXECUTION, Execution
from spark_lineage.merge.file_reading import (
    FILE_SCAN,
    FOOTER_RDD,
    is_lines,
    observed_in,
    reading,
    unnamed_files,
    with_files,
    without_inference,
    without_named,
)
from spark_lineage.merge.lineage import Transformation
from spark_lineage.merge.observed import Edge, Observed, by_name, compose, keep_edges, named, renamed, with_sources
from spark_lineage.merge.query_tables import with_queries, without_functions
from spark_lineage.merge.state import (
    COMPLETED,
    CUT_OFF,
    FAILED,
    RDD_JOB,
    LineageState,
    RunContent,
    RunState,
    with_contents,
)
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace
from spark_lineage.naming.options import Naming

# The place of Derby's metastore below the working directory, whatever the URL of the database
# (io.openlineage.client.utils.jdbc.DerbyJdbcExtractor).
_DERBY = re.compile(r"file:.*/metastore_db", re.DOTALL)
_UNNAMED = "snapshot "
# The name of a column may be one column in a function, perhaps in the quotes of the source.
_CALL = re.compile(r"(?P<function>\w+)\((?:DISTINCT )?(?P<quote>[\"`]?)(?P<column>.*)(?P=quote)\)", re.DOTALL)
_CONSTANT = re.compile(r"\*|[\d.]+|NULL|'[^']*'")
_AGGREGATES = frozenset({"avg", "count", "max", "min", "sum"})
_AGGREGATED, _MADE = Transformation("DIRECT", "AGGREGATION"), Transformation("DIRECT", "TRANSFORMATION")


def without_derby(runs: Mapping[str, RunState]) -> tuple[Mapping[str, RunState], list[str]]:
    """Return runs without tables of Derby, and for each run the parts that are unread in their place.

    Those of all databases are in one namespace.
    """
    # Many runs share their content.
    contents = {id(run.content): run.content for run in runs.values()}
    tables = {
        key: {
            one.dataset.name for one in (*content.inputs, *content.outputs) if _DERBY.fullmatch(one.dataset.namespace)
        }
        for key, content in contents.items()
    }
    unread = [f"{name}: its database" for run in runs.values() for name in sorted(tables[id(run.content)])]
    return (with_contents(runs, _without_derby) if unread else runs), unread


def _without_derby(content: RunContent) -> RunContent:
    inputs, outputs = (
        tuple(
            keep_edges(one, lambda edge: not _DERBY.fullmatch(edge[1].namespace))
            for one in observed
            if not _DERBY.fullmatch(one.dataset.namespace)
        )
        for observed in (content.inputs, content.outputs)
    )
    return structs.replace(content, inputs=inputs, outputs=outputs)


def without_mixed(runs: Mapping[str, RunState]) -> tuple[Mapping[str, RunState], dict[str, list[str]]]:
    """Return runs without edges that mix tables of several databases, and the names of these tables by run.

    Where two databases have a table of one name, the listener takes each column that both have for that of either.
    """
    mixed: dict[int, list[str]] = {}
    for key, content in {id(run.content): run.content for run in runs.values()}.items():
        tables = Counter(one.dataset.name for one in content.inputs if not is_path_namespace(one.dataset.namespace))
        several = sorted(name for name, number in tables.items() if number > 1)
        if several and _unmixed(content) is not content:
            mixed[key] = several
    named = {run_id: mixed[id(run.content)] for run_id, run in runs.items() if id(run.content) in mixed}
    return (with_contents(runs, _unmixed) if named else runs), named


def _unmixed(content: RunContent) -> RunContent:
    columns = Counter((one.dataset.name, field.name) for one in content.inputs for field in one.schema)

    def is_of_one(edge: Edge) -> bool:
        return is_path_namespace(edge[1].namespace) or columns[edge[1].name, edge[2]] <= 1

    outputs = tuple(keep_edges(output, is_of_one) for output in content.outputs)
    return content if outputs == content.outputs else structs.replace(content, outputs=outputs)


def is_named(version: str) -> bool:
    """Whether a version is no stand-in for one of which the last digits are lost."""
    return not version.startswith(_UNNAMED)


def with_snapshots(runs: Mapping[str, RunState]) -> Mapping[str, RunState]:
    """Return runs whose inputs have the snapshots that Iceberg reports to have read as their versions.

    By time travel they are others than the versions that the listener gives. A report has a number whose last digits
    are lost. It is that of the only version of the table with these digits that the task names; else a text stands for
    it that is no version, so that the task has not written it.
    """
    if not any(read.scanned for run in runs.values() for read in run.content.inputs):
        return runs
    known: dict[tuple[DatasetName, float], set[str]] = {}
    for run in runs.values():
        for one in (*run.content.inputs, *run.content.outputs):
            for version in filter(str.isdecimal, one.versions):
                known.setdefault((one.dataset.whole, float(version)), set()).add(version)

    def read_in(read: Observed) -> Observed:
        versions: set[str] = set()
        for number in read.scanned:
            found = known.get((read.dataset.whole, number), set())
            versions |= found if len(found) == 1 else {f"{_UNNAMED}{number}"}
        return structs.replace(read, versions=frozenset(versions), scanned=frozenset()) if read.scanned else read

    return with_contents(runs, lambda content: structs.replace(content, inputs=tuple(map(read_in, content.inputs))))


def without_pushed(output: Observed, inputs: Iterable[Observed]) -> Observed:
    """Return an output whose edges name columns that its inputs have, by the schemas that are known.

    Where a database or Iceberg answers ``SELECT sum(cost)``, the relation has a column ``SUM(COST)``: it comes from
    that column, and an aggregate of all rows, or of more, from none that is known.
    """
    calls = _calls(output, inputs)
    if not calls:
        return output
    edges: set[Edge] = set(output.edges - calls.keys())
    for (target, source, _, how), (match, is_known) in calls.items():
        made = _AGGREGATED if match["function"].lower() in _AGGREGATES else _MADE
        if is_known:
            edges.add((target, source, match["column"], compose(how, made)))
    return structs.replace(output, edges=frozenset(edges))


def _calls(output: Observed, inputs: Iterable[Observed]) -> Mapping[Edge, tuple[re.Match[str], bool]]:
    """Return the edges that name a call in place of a column, and whether its argument is a column."""
    columns = {read.dataset: {field.name for field in read.schema} for read in inputs if read.schema}
    unknown = {edge for edge in output.edges if edge[1] in columns and edge[2] not in columns[edge[1]]}
    calls = {edge: match for edge in unknown if (match := _CALL.fullmatch(edge[2]))}
    return {edge: (match, match["column"] in columns[edge[1]]) for edge, match in calls.items()}


def _unread_calls(run: RunState) -> Collection[str]:
    """Return an unread part for a run whose source answers with a function of more than a column (``SUM(A + B)``)."""
    content = run.content
    calls = (each for output in content.outputs for each in _calls(output, content.inputs).values())
    is_lost = any(not (is_known or _CONSTANT.fullmatch(match["column"])) for match, is_known in calls)
    return ["Scan: aggregates of its source"] if is_lost else []


# This column of every source of files says where a row came from; no file has it.
_METADATA = "_metadata"
# The change feed of a Delta table adds these (CDCReader): no table with a feed has columns of these names.
_OF_FEED = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
# The changelog of an Iceberg table adds these (ChangelogUtil); the listener names it as a table inside of that.
_OF_CHANGELOG = frozenset({"_change_type", "_change_ordinal", "_commit_snapshot_id"})
_CHANGELOG = "changes"
# A plan that is an RDD of the program, and nothing else.
_ROWS_OF_PROGRAM = "scan_existing_rdd"
# The command whose plan has a path as it was given.
_LOADING = "load_data_command"
# Delta keeps its log in the first of these, Structured Streaming that of a sink, an archive of lineage its state.
_INTERNAL = frozenset({"_delta_log", "_spark_metadata", "_spark_lineage"})
# The catalogs through which Iceberg's rewrite_data_files writes the rows of a table anew, of 1.12 and before.
_COMPACTING = ("default_rewrite_catalog", "default_cache_iceberg")
_STAGE = re.compile(r"(?P<model>.+?)/stages/\d+_\w+_[0-9a-f]{12}(?:/.*)?")
# The models of Spark ML keep these beside their metadata.
_PART = re.compile(
    r"(?P<model>.+?)/(?:data|bestModel|estimator|evaluator|subModels|classifier|model_\d+|userFactors|itemFactors"
    r"|treesMetadata)(?:/.*)?"
)
_NAMESPACE_AND_TABLE = 2


class Evidence:
    """The runs of a state as all evidence together has them, by the names that a naming gives.

    While a stream runs, what its event log does not have yet is left out, if it is going to (``is_logged``): only the
    log knows which directory the files belong to that the listener names, and which run writes for which query.

    ``runs`` are the listener's, and one for each execution that the listener kept silent about; ``executions`` has by
    run id what the event log says, and ``roots`` the run that a nested run is part of.
    """

    def __init__(self, state: LineageState, naming: Naming, *, is_logged: bool = False) -> None:
        self.runs: Mapping[str, RunState] = {
            run_id: _without_false(run) if run.content.job_name.endswith(_ROWS_OF_PROGRAM) else run
            for run_id, run in state.runs.items()
        }
        self.runs, self.unnamed_tables = without_derby(self.runs)
        self.runs, mixed = without_mixed(self.runs)
        self.executions: Mapping[str, Execution] = {}
        self._naming = naming
        self._contents: dict[int, RunContent] = {}
        self._places: Mapping[DatasetName, DatasetName] = {}
        self._models: frozenset[DatasetName] = frozenset()
        self._metadata: frozenset[DatasetName] = frozenset()
        self._feeds = frozenset(name for one in state.executions.values() for name in one.feeds)
        if state.executions:
            self._add_executions(state)
        for run_id, names in mixed.items():
            if not self._has_edges(run_id):
                self.unnamed_tables += [f"{name}: its database" for name in names]
        if any(run.content.is_streaming for run in self.runs.values()):
            self._read_streams(is_logged=is_logged)
        runs, self.runs = self.runs, with_files(with_snapshots(self.runs), self.executions)
        if self.executions:
            self.executions = without_named(self.runs, self.executions, runs)
        # The event log of a running stream is going to be there.
        is_alone = not (state.executions or is_logged)
        self.unnamed_files = unnamed_files(self.runs) if is_alone else []
        """An unread part for each run of the listener alone that reads files that no event names."""
        if is_alone:
            self.unnamed_tables += [part for run in self.runs.values() for part in _unread_calls(run)]
        observed = observed_in(self.runs)
        changelogs = {one.dataset: _above(one.dataset) for one in observed if _is_changelog(one)}
        self._places = {**self._places, **changelogs}
        self._feeds |= {table.whole for table in changelogs.values()}
        self._models = model_directories(observed)
        # A name of the listener, or of an output of the log, is a table unless another table is above it.
        logged = (one.dataset for execution in state.executions.values() for one in execution.outputs)
        real = {one.dataset for one in observed_in(state.runs)}.union(logged)
        self._metadata = metadata_tables(observed, real)
        self.roots = self._roots()

    def execution(self, run_id: str) -> Execution:
        """Return what the event log says of a run."""
        return self.executions.get(run_id, NO_EXECUTION)

    def _has_edges(self, run_id: str) -> bool:
        """Whether the plan of a run has all sources of what it writes."""
        execution = self.execution(run_id)
        return execution.is_whole and any(output.edges for output in execution.outputs)

    def content(self, run_id: str) -> RunContent:
        """Return what a run did; runs that did the same share it."""
        content = self.runs[run_id].content
        if id(content) not in self._contents:
            # A run that only rearranges the files of a table reads nothing from it, and writes nothing.
            is_nothing = any(catalog in content.job_name for catalog in _COMPACTING)
            # Paths are as the program gave them; a plan, and an RDD that reads for one, has what a glob stands for.
            is_of_plan = any(each in content.job_name for each in (FILE_SCAN, FOOTER_RDD))
            is_own_rdd = content.job_type == RDD_JOB and not is_of_plan
            may_have_globs = content.is_declared or is_own_rdd or _LOADING in content.job_name
            naming = self._naming if may_have_globs else self._naming.literal
            inputs = () if is_nothing else self._named(content.inputs, naming)
            written = () if is_nothing else self._named(content.outputs, naming)
            outputs = tuple(without_pushed(_from_inputs(one, inputs), inputs) if one.edges else one for one in written)
            self._contents[id(content)] = structs.replace(content, inputs=inputs, outputs=outputs)
        return self._contents[id(content)]

    def inputs(self, run_id: str) -> tuple[Observed, ...]:
        """Return what a run read; of one inside a micro-batch that names nothing, what the micro-batch read."""
        content = self.content(run_id)
        is_nested = run_id in self.roots and content.outputs and not content.inputs
        return self.content(self.roots[run_id]).inputs if is_nested else content.inputs

    def _named(self, observed: tuple[Observed, ...], naming: Naming) -> tuple[Observed, ...]:
        if self._metadata:
            observed = tuple(
                keep_edges(one, lambda edge: edge[1] not in self._metadata)
                for one in observed
                if one.dataset not in self._metadata
            )
        if self._places:
            observed = by_name(renamed(with_sources(one, self._places), self._places) for one in observed)
        if self._feeds:
            observed = tuple(self._without_feed(one) for one in observed)
        known = tuple(
            keep_edges(one, lambda edge: edge[2] != _METADATA and not _is_internal(edge[1]))
            for one in named(observed, naming)
            if not _is_internal(one.dataset)
        )
        return by_model(known, self._models) if self._models else known

    def _without_feed(self, one: Observed) -> Observed:
        """Return a dataset without what change feeds add to tables: neither as its columns nor in its edges."""
        added = _OF_FEED | _OF_CHANGELOG
        one = keep_edges(one, lambda edge: edge[2] not in added or edge[1].whole not in self._feeds)
        if one.dataset.whole not in self._feeds:
            return one
        tables = frozenset(link for link in one.symlinks if not link.name.endswith(f".{_CHANGELOG}"))
        schema = tuple(field for field in one.schema if field.name not in added)
        return structs.replace(one, symlinks=tables, schema=schema)

    def _add_executions(self, state: LineageState) -> None:
        own = {application_id for _, application_id in state.own_applications()}
        # A directory of logs may hold those of other tasks.
        logged = {key: one for key, one in state.executions.items() if not own or one.application_id in own}
        executions = matched(state, logged)
        self._places = places_of(state, logged.values())
        runs = dict(self.runs)
        by_key = {one.key: run_id for run_id, one in executions.items()}
        for run_id, one in executions.items():
            # A micro-batch has the inputs of what runs inside of it.
            around = by_key.get(one.root_key, run_id) if one.query_id else run_id
            listened = by_name(each for each_id in (run_id, around) for each in self.runs[each_id].content.inputs)
            executions[run_id] = with_names(with_queries(one, runs[run_id].content.inputs), listened)
            runs[run_id] = corrected(without_functions(runs[run_id], one.queries), executions[run_id])
        of_plans = (one for each in logged.values() if each.execution_id >= 0 for one in each.inputs)
        read = {one.dataset for one in of_plans if not is_lines(one)}
        declared = by_name(observed_in({run_id: run for run_id, run in state.runs.items() if run.content.is_declared}))
        for key in sorted(logged.keys() - {one.key for one in executions.values()}):
            run_id = "/".join((key[0], *filter(None, key[1:2]), str(key[2])))
            executions[run_id] = with_declared_names(without_inference(logged[key], read), declared)
            runs[run_id] = run_of(executions[run_id])
        superseded = state.superseded()
        for run_id, one in executions.items() if superseded else ():
            # The next attempt has cut off the runs that were open when it began.
            if one.key[:2] in superseded and not runs[run_id].seen & (COMPLETED | FAILED):
                runs[run_id] = structs.replace(runs[run_id], seen=runs[run_id].seen | CUT_OFF)
        self.runs, self.executions = runs, said_once(runs, executions)

    def _read_streams(self, *, is_logged: bool) -> None:
        """Name what micro-batches, and runs inside of them, read by the directories that their query reads.

        Of a query that is not known it may be the directory of any.
        """
        watched: dict[str, set[DatasetName]] = {"": set()}
        runs: dict[str, RunState] = {}
        for run_id, run in self.runs.items():
            content = run.content
            is_empty = not (content.inputs or content.outputs or content.is_streaming)
            # The log has these runs, or is never going to have them.
            if not is_logged or run_id in self.executions or content.is_declared or is_empty:
                runs[run_id] = run
                for query_id in ("", self.execution(run_id).query_id) if content.is_streaming else ():
                    watched.setdefault(query_id, set()).update(read.dataset for read in content.inputs)
        for run_id, run in runs.items():
            query_id = self.execution(run_id).query_id
            if query_id or run.content.is_streaming:
                names = [read.dataset for read in run.content.inputs]
                directories = watched.get(query_id, set())
                around = {name: above for name in names for above in directories_above(name) if above in directories}
                runs[run_id] = reading(run, around)
        self.runs = runs

    def _roots(self) -> dict[str, str]:
        """Return the run that each nested one is part of: as the log says, else the only micro-batch around it."""
        by_execution = {one.key: run_id for run_id, one in self.executions.items()}
        roots = {
            run_id: by_execution[one.root_key]
            for run_id, one in self.executions.items()
            if by_execution.get(one.root_key, run_id) != run_id
        }
        batches = sorted(
            (run.first, run.last, run_id)
            for run_id, run in self.runs.items()
            if run.content.is_streaming and run.content.inputs
        )
        starts = [first for first, _, _ in batches]
        for run_id, run in self.runs.items() if batches else ():
            content = run.content
            if run_id in self.executions or content.is_streaming or content.inputs or not content.outputs:
                continue
            around = [batch for _, last, batch in batches[: bisect_right(starts, run.first)] if run.last <= last]
            if len({tuple(read.dataset for read in self.content(batch).inputs) for batch in around}) == 1:
                roots[run_id] = min(around)
        return roots


def _without_false(run: RunState) -> RunState:
    """Return a run of a query over an RDD, such as Delta runs before it writes, without its inputs as its outputs."""
    content = run.content
    written = [one.dataset for one in content.outputs if one.is_bare and not one.edges]
    false = {read.dataset for read in content.inputs}.intersection(written)
    outputs = tuple(one for one in content.outputs if one.dataset not in false)
    return structs.replace(run, content=structs.replace(content, outputs=outputs))


def _from_inputs(one: Observed, inputs: tuple[Observed, ...]) -> Observed:
    """Return a dataset with the columns of an input where its edges name the folder around it."""
    read = {each.dataset for each in inputs}
    folders = [(folder, name) for name in read for folder in islice(directories_above(name), 1)]
    count = Counter(folder for folder, _ in folders)
    return with_sources(one, {folder: name for folder, name in folders if folder not in read and count[folder] == 1})


# Each edge asks this of its dataset, of which there are few.
@lru_cache(maxsize=1024)
def _is_internal(name: DatasetName) -> bool:
    """Whether a path is the bookkeeping of a table."""
    return is_path_namespace(name.namespace) and not _INTERNAL.isdisjoint(name.name.split("/"))


def metadata_tables(observed: Iterable[Observed], real: Collection[DatasetName]) -> frozenset[DatasetName]:
    """Return Iceberg's metadata tables (``cat.db.t.snapshots``) among all datasets: reading one reads no row.

    By its name alone, ``db.t.files`` may be a table ``files`` in a namespace ``db.t``: what is above is a table that
    the task knows, or at least no folder of other tables. ``real`` are names that are no metadata tables by themselves.
    """
    tables: set[DatasetName] = set()
    alike: set[DatasetName] = set()
    for one in observed:
        names = [link.name.casefold().split(".") for link in one.tables]
        tables |= {one.dataset} if names else set()
        if any(len(parts) > _NAMESPACE_AND_TABLE and METADATA_TABLE.fullmatch(parts[-1]) for parts in names):
            alike.add(one.dataset)
    if not alike:
        return frozenset()
    folders = {_above(name) for name in tables - alike}
    return frozenset(
        name
        for name in alike
        if (_above(name) != name and _above(name) in tables) or (name not in real and _above(name) not in folders)
    )


def _above(name: DatasetName) -> DatasetName:
    return next(directories_above(name), name)


def _is_changelog(one: Observed) -> bool:
    """Whether a dataset is what the listener makes of the changelog of an Iceberg table (``db.t.changes``)."""
    columns = {field.name for field in one.schema}
    return columns >= _OF_CHANGELOG and one.dataset.name.endswith(f"/{_CHANGELOG}")


def model_directories(observed: Iterable[Observed]) -> frozenset[DatasetName]:
    """Return the directories of Spark ML's models, of all datasets that a task names."""
    paths = {one.dataset: one for one in observed if is_path_namespace(one.dataset.namespace)}
    found, around = (
        {DatasetName(name.namespace, match["model"]) for name in paths if (match := inside.fullmatch(name.name))}
        for inside in (_STAGE, _PART)
    )
    for name, one in paths.items():
        model = DatasetName(name.namespace, name.name.removesuffix("/metadata"))
        # A line of JSON; other data in a directory of that name has columns.
        columns = [field.name for field in one.schema]
        if model != name and (columns == ["_1"] or (len(columns) <= 1 and model in around)):
            found.add(model)
    return frozenset(name for name in found if found.isdisjoint(directories_above(name)))


def by_model(observed: tuple[Observed, ...], models: frozenset[DatasetName]) -> tuple[Observed, ...]:
    """Return what is inside of a model as the model; columns and numbers of its files say nothing of it."""
    lifted = {one.dataset: model for one in observed for model in directories_above(one.dataset) if model in models}
    if not lifted:
        return observed
    return by_name(
        structs.replace(one, dataset=lifted[one.dataset], schema=(), statistics=None, edges=frozenset())
        if one.dataset in lifted
        else one
        for one in observed
    )
