"""The run facet about the status of the Spark application, and OpenLineage's ``errorMessage``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attr
from openlineage.client.generated.base import RunFacet
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.utils import RedactMixin

from spark_lineage.emit.facets import PRODUCER, OwnSchema
from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.spelling import event_time, without_controls

if TYPE_CHECKING:
    from spark_lineage.merge.lineage import TaskState
    from spark_lineage.merge.transition import StatusSummary, StatusTransition

STATUS_KEY = "sparkLineage_status"
# Of the texts that a source gives; with the number of transitions that a ledger keeps, this bounds the facet.
_TEXT_LENGTH = 500


@attr.define
class Transition(RedactMixin):
    """One change of status; ``oldStatus`` is left out for the first of a thing."""

    subject: str
    id: str
    newStatus: str  # noqa: N815  (the field names are the facet's JSON)
    time: str
    source: str
    oldStatus: str | None = None  # noqa: N815
    applicationId: str | None = None  # noqa: N815
    detail: str | None = None
    exception: str | None = None

    _skip_redact: ClassVar[list[str]] = [
        "subject",
        "id",
        "newStatus",
        "time",
        "source",
        "oldStatus",
        "applicationId",
    ]


@attr.define
class StatusCount(RedactMixin):
    """How many SparkJobs, SQL executions or streaming queries have a status."""

    subject: str
    status: str
    count: int

    _skip_redact: ClassVar[list[str]] = ["subject", "status", "count"]


@attr.define
class StatusRunFacet(OwnSchema, RunFacet):
    """How the task ended as far as Spark is concerned, what led there, and where to read on."""

    state: str
    transitions: list[Transition] = attr.field(factory=list)
    counts: list[StatusCount] = attr.field(factory=list)
    error: str | None = None
    uiUrl: str | None = None  # noqa: N815
    historyUrl: str | None = None  # noqa: N815
    logsUrl: str | None = None  # noqa: N815

    _additional_skip_redact: ClassVar[list[str]] = ["state"]


def status_facets(state: TaskState, status: StatusSummary) -> dict[str, RunFacet]:
    """The status facet; and ``errorMessage`` where the application failed."""
    error = without_controls(redact(status.error))
    facets: dict[str, RunFacet] = {
        STATUS_KEY: StatusRunFacet(
            state=state,
            transitions=[_transition(one) for one in status.transitions],
            counts=[StatusCount(*one) for one in status.counts],
            error=error or None,
            uiUrl=_url(status.ui_url),
            historyUrl=_url(status.history_url),
            logsUrl=_url(status.logs_url),
            producer=PRODUCER,
        )
    }
    if error:
        facets["errorMessage"] = ErrorMessageRunFacet(message=error, programmingLanguage="PYTHON", producer=PRODUCER)
    return facets


def _transition(one: StatusTransition) -> Transition:
    return Transition(
        subject=one.subject,
        id=redact(one.subject_id),
        newStatus=one.new_status,
        time=event_time(one.time),
        source=one.source,
        oldStatus=one.old_status,
        applicationId=one.application_id or None,
        detail=_text(one.detail),
        exception=_text(one.exception),
    )


def _text(text: str) -> str | None:
    return without_controls(redact(text))[:_TEXT_LENGTH] or None


def _url(url: str | None) -> str | None:
    return None if url is None else redact(url)
