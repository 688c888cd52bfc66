"""Which sources tell the status of an application, by its master and its deploy mode."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from spark_lineage.merge.transition import StatusSummary
from spark_lineage.watch.driver_ui import DriverUi
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.history_server import HistoryServer
from spark_lineage.watch.kubernetes import Kubernetes
from spark_lineage.watch.source import Known, Source
from spark_lineage.watch.standalone import StandaloneMaster, StandaloneSubmissions
from spark_lineage.watch.yarn import YarnResourceManager


class Sources:
    """The sources of one launch that fit its master and deploy mode, as the table in ``docs/status.md`` has them.

    A source without an address is left out, but for the driver UI, whose address is learnt later.
    """

    def __init__(self, endpoints: Endpoints, known: Known) -> None:
        self._endpoints = endpoints
        self._known = known
        client = endpoints.client()
        managers = [kind(client, endpoints, known) for kind in _managers(endpoints)]
        history = [HistoryServer(client, endpoints, known)] if endpoints.history_server_url else []
        self.ui = DriverUi(client, endpoints, known)
        self.while_running: Sequence[Source] = [*managers, self.ui]
        self.at_the_end: Sequence[Source] = [*managers, *history]

    def linked(self, summary: StatusSummary, application_id: str | None) -> StatusSummary:
        """Return a summary with the links of an application; that of the UI is dead when the driver has ended."""
        history, attempt_id = self._endpoints.history_server_url, self._known.attempt_id
        attempt = f"{attempt_id}/" if attempt_id else ""
        return structs.replace(
            summary,
            ui_url=self.ui.url,
            history_url=f"{history}/history/{application_id}/{attempt}jobs/" if history and application_id else None,
            logs_url=self._known.logs_url,
        )


def _managers(endpoints: Endpoints) -> list[type[Source]]:
    is_cluster = endpoints.is_cluster
    if endpoints.master.startswith("spark://"):
        return [StandaloneSubmissions, StandaloneMaster] if is_cluster else [StandaloneMaster]
    if endpoints.master.startswith("yarn") and endpoints.yarn_urls:
        return [YarnResourceManager]
    # In client mode the driver is no pod.
    return [Kubernetes] if endpoints.master.startswith("k8s://") and is_cluster else []
