"""Which files runs read: those of RDDs, of which the listener names the directory alone, and what only gives a schema.

What is read only to learn a schema makes no input, unless nothing else names the data (M10).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Mapping
from itertools import islice

from msgspec import structs

from spark_lineage.merge.correction import with_above
from spark_lineage.merge.execution import FILES_UNREAD, NO_EXECUTION, Execution
from spark_lineage.merge.observed import LINES, Observed, by_name, renamed
from spark_lineage.merge.state import RDD_JOB, RunContent, RunState
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

# The listener calls a ``FileScanRDD`` so in the name of a job.
FILE_SCAN = "file_scan"
# A file of a directory that Spark has written.
_PART_FILE = re.compile(r"/part-\d{5}[^/]*$")
# Spark's schema inference for CSV and JSON has these plans, which read files as lines of text.
_INFERENCE_PLANS = ("collect_limit", "deserialize_to_object")
# The RDD that reads the footers of Parquet and ORC files; no RDD of a program's own names files by it.
FOOTER_RDD = "parallel_collection"


def with_files(runs: Mapping[str, RunState], executions: Mapping[str, Execution]) -> Mapping[str, RunState]:
    """Return runs by the file that they read, where they name a directory of which runs before inspected one file.

    A directory that the log names was read as a whole. The rows of ``df.rdd`` come from a ``FileScanRDD``, of which
    the listener names the directory alone: a file in it whose schema was inferred, and which no plan reads, is the
    file. One that another action reads is not known to be. Of what infers the schema of a directory, the files that
    it names are that directory.
    """
    whole = _read_by_plans(runs, executions)
    of_files = _read_by_plans(runs, executions, has_inference=False)
    read_inside = {directory for name in of_files for directory in islice(directories_above(name), 1)}
    inspected: dict[DatasetName, set[DatasetName]] = {}
    found: dict[str, RunState] = {}
    for run_id in sorted(runs, key=lambda each: (runs[each].first, each)):
        content = runs[run_id].content
        execution = executions.get(run_id, NO_EXECUTION)
        is_of_rows = content.job_type == RDD_JOB and FILE_SCAN in content.job_name
        names: dict[DatasetName, DatasetName] = {}
        for read in content.inputs:
            is_inferring, files = is_schema_reading(content, read), inspected.get(read.dataset, ())
            around = filter(whole.__contains__, directories_above(read.dataset))
            if not is_inferring and len(files) == 1 and _is_unknown(read, content, execution, read_inside):
                names[read.dataset] = min(files)
            elif (is_inferring or is_of_rows) and (directory := next(around, None)):
                names[read.dataset] = directory
        found[run_id] = reading(runs[run_id], names)
        for read in found[run_id].content.inputs:
            if is_schema_reading(content, read) and not read.is_bare:
                for directory in islice(directories_above(read.dataset), 1):
                    inspected.setdefault(directory, set()).add(read.dataset)
    return found


def _is_unknown(read: Observed, content: RunContent, execution: Execution, known: Container[DatasetName]) -> bool:
    """Whether a directory stands for files in it which nothing names."""
    if not read.is_bare or content.is_declared or read.dataset in known:
        return False
    is_of_rows = content.job_type == RDD_JOB and FILE_SCAN in content.job_name
    is_open = bool(execution.unread_files) or (is_of_rows and execution is NO_EXECUTION)
    return is_open and all(one.dataset != read.dataset for one in execution.inputs)


def without_named(
    runs: Mapping[str, RunState], executions: Mapping[str, Execution], before: Mapping[str, RunState]
) -> dict[str, Execution]:
    """Return executions without those unread parts whose files the listener names, by the directory around them.

    A directory is left out where anything in it is an input or an output (M10); the files are then not known, unless
    they are declared.

    :param before: the runs before the directories in them got the names of files
    """
    found = dict(executions)
    unread = {run_id: one for run_id, one in executions.items() if one.unread_files}
    left_out = _left_out(runs) if unread else frozenset()
    for run_id, one in unread.items():
        directories = [read.dataset for read in runs[run_id].content.inputs if _is_directory(read)]
        is_named = any(_is_directory(read) for read in before[run_id].content.inputs)
        if is_named and left_out.isdisjoint(directories):
            parts = tuple(part for part in one.unread if part not in one.unread_files)
            found[run_id] = structs.replace(one, unread=parts)
    return found


def unnamed_files(runs: Mapping[str, RunState]) -> list[str]:
    """Return an unread part for each run of the listener whose files are not known, for where there is no log.

    The rows of a micro-batch, and what a job reads that may only infer a schema, are no files of their own.
    """
    left_out = _left_out(runs)
    streamed = {
        directory
        for run in runs.values()
        if run.content.is_streaming
        for read in run.content.inputs
        for directory in with_above(read.dataset)
    }
    found = []
    for run in runs.values():
        content = run.content
        is_saving = bool(content.outputs)
        is_reading = is_saving or (content.job_type == RDD_JOB and FILE_SCAN not in content.job_name)
        if content.is_declared or content.is_streaming or not is_reading:
            continue
        directories = {
            read.dataset for read in content.inputs if _is_directory(read) and not is_schema_reading(content, read)
        }
        found += [f"RDD{FILES_UNREAD}"] if not left_out.isdisjoint(directories - streamed) else []
    return found


def _left_out(runs: Mapping[str, RunState]) -> frozenset[DatasetName]:
    """Return the directories around inputs and outputs, but for those that something is declared for."""
    around = {above for one in observed_in(runs) for above in directories_above(one.dataset)}
    declared = {read.dataset for run in runs.values() if run.content.is_declared for read in run.content.inputs}
    covered = {above for name in declared for above in with_above(name)}
    return frozenset(name for name in around - covered if declared.isdisjoint(directories_above(name)))


def _is_directory(read: Observed) -> bool:
    """Whether a name may be that of the directory around files that were read."""
    return read.is_bare and is_path_namespace(read.dataset.namespace)


def _read_by_plans(
    runs: Mapping[str, RunState], executions: Mapping[str, Execution], *, has_inference: bool = True
) -> set[DatasetName]:
    """Return what plans name, by the listener or by the log; that has plans of schema inference as well."""
    contents = {id(run.content): run.content for run in runs.values() if run.content.job_type != RDD_JOB}
    listened = {
        read.dataset
        for content in contents.values()
        for read in content.inputs
        if not (read.is_bare or is_schema_reading(content, read))
    }
    logged = (read for one in executions.values() if one.execution_id >= 0 for read in one.inputs)
    return listened.union(read.dataset for read in logged if has_inference or not is_lines(read))


def reading(run: RunState, names: Mapping[DatasetName, DatasetName]) -> RunState:
    """Return a run with what it read by other names."""
    if not names:
        return run
    inputs = by_name(renamed(read, names) for read in run.content.inputs)
    return structs.replace(run, content=structs.replace(run.content, inputs=inputs))


def observed_in(runs: Mapping[str, RunState]) -> list[Observed]:
    """Return the datasets of runs, those that runs share once."""
    contents = {id(run.content): run.content for run in runs.values()}
    return [one for content in contents.values() for one in (*content.inputs, *content.outputs)]


def without_inference(execution: Execution, read: Collection[DatasetName]) -> Execution:
    """Return an execution without the files that it read to infer a schema, where other plans ``read`` them.

    These read the files, or a directory around them. Of what no other plan reads, such as the file behind ``df.rdd``,
    this is the only witness; its lines are no schema. Several files, and one that Spark has written, are of the
    directory that the program named.
    """
    lines = [one for one in execution.inputs if is_lines(one)]
    around = {next(directories_above(one.dataset), one.dataset) for one in lines}
    is_of_spark = any(_PART_FILE.search(one.dataset.name) for one in lines)
    is_directory = not execution.outputs and len(around) == 1 and (len(lines) > 1 or is_of_spark)
    kept = [
        structs.replace(one, dataset=min(around) if is_directory else one.dataset, schema=())
        for one in lines
        if not any(name in read for name in (one.dataset, *directories_above(one.dataset)))
    ]
    return structs.replace(execution, inputs=by_name([*(one for one in execution.inputs if one not in lines), *kept]))


def is_lines(read: Observed) -> bool:
    """Whether files were read as lines of text, as schema inference does."""
    return len(read.schema) == 1 and (read.schema[0].name, read.schema[0].type) == (LINES[0].name, LINES[0].type)


def is_schema_reading(content: RunContent, read: Observed) -> bool:
    """Whether a run read this dataset only to learn its schema."""
    if content.outputs:
        return False
    if content.job_type == RDD_JOB:
        return FOOTER_RDD in content.job_name
    is_inference = is_lines(read) and any(plan in content.job_name for plan in _INFERENCE_PLANS)
    return is_inference and is_path_namespace(read.dataset.namespace)
