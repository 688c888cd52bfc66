"""What the listener says that is no lineage (M10): schema reading and bare directories."""

from __future__ import annotations

from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import RunContent
from spark_lineage.naming.identity import DatasetName, is_path_namespace

# Plans of Spark's schema inference for CSV and JSON, which reads files as lines of text.
_INFERENCE_PLANS = ("collect_limit", "deserialize_to_object")
# The RDD that reads the footers of Parquet and ORC files; no RDD of a program's own names files by it.
_FOOTER_RDD = "parallel_collection"


# Where Delta keeps its log, Structured Streaming that of a sink, and an archive of lineage what it has read: part of a
# dataset, never one.
_INTERNAL = frozenset({"_delta_log", "_spark_metadata", "_spark_lineage"})


# The catalogs through which Iceberg's rewrite_data_files writes the rows of a table anew, of 1.12 and before.
_COMPACTING = ("default_rewrite_catalog", "default_cache_iceberg")


def is_compaction(content: RunContent) -> bool:
    """Whether a run only rearranges the files of a table: nothing is read from it, and nothing written."""
    return any(catalog in content.job_name for catalog in _COMPACTING)


def is_internal(name: DatasetName) -> bool:
    """Whether a path is the bookkeeping of a table."""
    return is_path_namespace(name.namespace) and not _INTERNAL.isdisjoint(name.name.split("/"))


def is_schema_reading(content: RunContent, read: Observed) -> bool:
    """Whether a run read this dataset only to learn its schema."""
    if content.outputs:
        return False
    if content.job_type == "RDD_JOB":
        return _FOOTER_RDD in content.job_name
    is_lines = len(read.schema) == 1 and read.schema[0].name == "value" and read.schema[0].type == "string"
    return (
        is_lines
        and is_path_namespace(read.dataset.namespace)
        and any(plan in content.job_name for plan in _INFERENCE_PLANS)
    )
