"""What the listener's events say of the status of applications: that they have begun, and no more."""

from __future__ import annotations

from collections.abc import Iterator

from spark_lineage.merge.state import LineageState, utc
from spark_lineage.merge.transition import StatusReport

SOURCE = "OpenLineage listener"


def begun_applications(state: LineageState) -> Iterator[StatusReport]:
    """The applications whose START has come; their end is not to be had here, because it says COMPLETE always."""
    for run_id, application in state.applications.items():
        run = state.runs.get(run_id)
        if application.application_id is not None and run is not None:
            yield StatusReport("APPLICATION", application.application_id, "RUNNING", utc(run.first), SOURCE)
