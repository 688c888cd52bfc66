"""What is read only to learn a schema: it makes no input, unless nothing else names the data (M10)."""

from __future__ import annotations

import re
from collections.abc import Collection

from msgspec import structs

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.observed import LINES, Observed, by_name
from spark_lineage.merge.state import RDD_JOB, RunContent
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

# A file of a directory that Spark has written.
_PART_FILE = re.compile(r"/part-\d{5}[^/]*$")
# Plans of Spark's schema inference for CSV and JSON, which reads files as lines of text.
_INFERENCE_PLANS = ("collect_limit", "deserialize_to_object")
# The RDD that reads the footers of Parquet and ORC files; no RDD of a program's own names files by it.
FOOTER_RDD = "parallel_collection"


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
