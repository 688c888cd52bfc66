"""Finds the file that a run of RDDs read, of which the listener names the directory.

The rows of ``df.rdd`` come from a ``FileScanRDD``, of which neither the listener nor the event log tells the path that
the program gave. What read the schema of the same file before does, if it is the only one that is known there.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from msgspec import structs

from spark_lineage.merge.correction import RDD_JOB
from spark_lineage.merge.noise import is_schema_reading
from spark_lineage.merge.observed import Observed, by_name
from spark_lineage.merge.state import RunContent, RunState
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

# What the listener calls a ``FileScanRDD`` in the name of a job.
_FILE_SCAN = "file_scan"


def with_files(runs: Mapping[str, RunState]) -> Mapping[str, RunState]:
    """Return runs by the file that they read, where they name a directory of which runs before named one file."""
    inside: dict[DatasetName, set[DatasetName]] = {}
    found: dict[str, RunState] = {}
    for run_id in sorted(runs, key=lambda each: (runs[each].first, each)):
        run = found[run_id] = _read(runs[run_id], inside)
        for read in run.content.inputs:
            if not read.is_bare and is_path_namespace(read.dataset.namespace):
                for directory in islice(directories_above(read.dataset), 1):
                    inside.setdefault(directory, set()).add(read.dataset)
    return found


def _read(run: RunState, inside: Mapping[DatasetName, set[DatasetName]]) -> RunState:
    content = run.content
    files = {
        read.dataset: min(inside[read.dataset])
        for read in content.inputs
        if len(inside.get(read.dataset, ())) == 1 and read.is_bare and _is_scan(content, read)
    }
    if not files:
        return run
    inputs = by_name(structs.replace(read, dataset=files.get(read.dataset, read.dataset)) for read in content.inputs)
    return structs.replace(run, content=structs.replace(content, inputs=inputs))


def _is_scan(content: RunContent, read: Observed) -> bool:
    """Whether a directory stands for files of a data frame: ``sc.textFile`` and its like read what they name."""
    is_scan = not content.is_declared and (content.job_type != RDD_JOB or _FILE_SCAN in content.job_name)
    return is_scan and not is_schema_reading(content, read)
