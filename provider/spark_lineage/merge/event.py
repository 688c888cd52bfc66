"""The parts of an OpenLineage ``RunEvent`` that the merge needs, but for its datasets (spec 2-0-2).

The decoder skips everything else on a line. Field names are OpenLineage's own.
"""

# ruff: noqa: N815 - field names are those of the specification
from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

EventType = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
# A time without an offset could not be compared with the others.
AwareTime = Annotated[datetime, Meta(tz=True)]


class _ParentFacet(Struct, gc=False):
    run: Run
    job: Job


class EngineFacet(Struct, gc=False):
    """``ProcessingEngineRunFacet``."""

    version: str | None = None
    openlineageAdapterVersion: str | None = None


class ApplicationFacet(Struct, gc=False):
    """``spark_applicationDetails``, a facet of the Spark listener's own."""

    applicationId: str | None = None
    master: str | None = None
    deployMode: str | None = None
    uiWebUrl: str | None = None


class _Properties(Struct, gc=False):
    event_log_directory: str | None = field(default=None, name="spark.eventLog.dir")


class _PropertiesFacet(Struct, gc=False):
    properties: _Properties = field(default_factory=_Properties)


class RunFacets(Struct, gc=False):
    """The run facets that are read; those whose names begin with ``spark_`` are the listener's own."""

    parent: _ParentFacet | None = None
    processing_engine: EngineFacet | None = None
    spark_applicationDetails: ApplicationFacet | None = None
    spark_properties: _PropertiesFacet | None = None


class Run(Struct, gc=False):
    """``Run``."""

    runId: str
    facets: RunFacets | None = None


class JobTypeFacet(Struct, gc=False):
    """``JobTypeJobFacet``: ``APPLICATION``, ``SQL_JOB`` or ``RDD_JOB``, ``BATCH`` or ``STREAMING``, and whose it is."""

    integration: str | None = None
    jobType: str | None = None
    processingType: str | None = None


class JobFacets(Struct, gc=False):
    """The job facets that are read."""

    jobType: JobTypeFacet | None = None


class Job(Struct, gc=False):
    """``Job``."""

    namespace: str
    name: str
    facets: JobFacets | None = None


class RunEvent(Struct, gc=False):
    """One event; ``inputs`` and ``outputs`` are still JSON, because most events repeat what another one said."""

    eventTime: AwareTime
    run: Run
    job: Job
    eventType: EventType | None = None
    inputs: Raw = Raw(b"[]")
    outputs: Raw = Raw(b"[]")
