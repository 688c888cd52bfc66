"""Reads the jobs of RDDs, which are no SQL executions: which files they read, and that they save some."""

from __future__ import annotations

import re

from spark_lineage.merge.execution import Execution, rdd_execution_id
from spark_lineage.plans.content import joined
from spark_lineage.plans.event_log_lines import JobStart, Rdd
from spark_lineage.plans.tables import Tables

# Methods of SparkContext that name the RDDs that they make by the paths that these read.
_READING_FILES = re.compile(
    r'"name":"(?:textFile|wholeTextFiles|binaryFiles|(?:newAPIH|h)adoopFile|sequenceFile|objectFile)"'
)
# Methods of RDD that write files, of which no event has the path.
_SAVING_FILES = re.compile(r'"name":"(?P<method>saveAs\w+)"')
# What an RDD is called that has no name: by its class.
_CLASS_NAME = re.compile(r"\w+RDD\Z")
_WHOLE_TEXT_FILES = '"name":"wholeTextFiles"'


def rdd_job(event: JobStart, application_id: str, tables: Tables) -> Execution | None:
    """Return a job with the files that its RDDs are named by; None for one that neither reads nor saves files.

    No event has the path that it saves to: its command is the method of the RDD (``saveAsTextFile``).
    """
    rdds = (rdd for stage in event.stages for rdd in stage.rdds if rdd.name and _is_named_by_path(rdd))
    paths = {path.strip() for rdd in rdds for path in (rdd.name or "").split(",")}
    saving = _SAVING_FILES.search((event.properties and event.properties.scope) or "")
    if not (paths or saving):
        return None
    number = rdd_execution_id(event.id)
    return Execution(
        application_id,
        number,
        number,
        event.submitted / 1000,
        has_jobs=True,
        command=saving["method"] if saving else "",
        inputs=joined(tables.at(path) for path in sorted(paths)),
    )


def _is_named_by_path(rdd: Rdd) -> bool:
    """Whether the name of an RDD is the path that it reads, and none that the program gave it (``setName``).

    ``HadoopRDD``, ``NewHadoopRDD`` and ``BinaryFileRDD`` have it, which a program never holds: it is given what is made
    from them. Of ``wholeTextFiles`` that alone has it.
    """
    scope = rdd.scope or ""
    if not _READING_FILES.search(scope) or _CLASS_NAME.fullmatch(rdd.name or ""):
        return False
    return bool(rdd.parents) == (_WHOLE_TEXT_FILES in scope)
