"""Which sources tell the status of an application, by its master and its deploy mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_lineage.watch.driver_ui import DriverUi
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.history_server import HistoryServer
from spark_lineage.watch.kubernetes import Kubernetes
from spark_lineage.watch.rest import RestClient
from spark_lineage.watch.spark_reports import Progress
from spark_lineage.watch.standalone import StandaloneMaster
from spark_lineage.watch.standalone_submissions import StandaloneSubmissions
from spark_lineage.watch.watcher import StatusSource
from spark_lineage.watch.yarn import YarnResourceManager


@dataclass
class Known:
    """What is learnt of a launch while it runs, from logs and events; the sources look here each time.

    ``driver_id`` is what the Spark provider finds the driver again by, in cluster mode: ``driver-…``,
    ``application_…``, ``{namespace}:{pod}``. ``ui_url`` is the latest address that the driver told of its UI, without
    ``/`` at its end; it gets no credentials.
    """

    application_id: str | None = None
    driver_id: str | None = None
    ui_url: str | None = None


@dataclass(frozen=True)
class Links:
    """Where a person can read on; None for what is not known."""

    ui_url: str | None
    history_url: str | None
    logs_url: str | None


class Sources:
    """The sources of one launch, of which ``at_the_end`` can still tell something when the driver has ended."""

    def __init__(self, endpoints: Endpoints, known: Known, client: RestClient) -> None:
        self._endpoints = endpoints
        self._known = known
        self._yarn: YarnResourceManager | None = None
        self._history: HistoryServer | None = None
        self._last_ui_url: str | None = None
        self._ui = DriverUi(client, self._locate, lambda: known.application_id)
        managers = self._cluster_managers(client)
        if endpoints.history_server_url:
            self._history = HistoryServer(client, endpoints.history_server_url, lambda: known.application_id)
        self.while_running: Sequence[StatusSource] = [*managers, self._ui]
        self.at_the_end: Sequence[StatusSource] = [*managers, *([self._history] if self._history else [])]

    @property
    def progress(self) -> Progress | None:
        """How far the SparkJobs are, by the latest answer of the driver's UI; None before the first."""
        return self._ui.progress

    def ask_the_ui_soon(self) -> None:
        """Ask the driver's UI from its beginning on: nobody else is going to tell of the SparkJobs."""
        self._ui.first_seconds = 1.0

    def links(self, application_id: str | None) -> Links:
        """Return the links of an application; that of the UI is dead when the driver has ended."""
        history = self._endpoints.history_server_url
        attempt = f"{self._history.attempt_id}/" if self._history and self._history.attempt_id else ""
        return Links(
            ui_url=self._locate() or self._last_ui_url,
            history_url=f"{history}/history/{application_id}/{attempt}jobs/" if history and application_id else None,
            logs_url=self._yarn.logs_url if self._yarn else None,
        )

    def _cluster_managers(self, client: RestClient) -> list[StatusSource]:
        endpoints, known = self._endpoints, self._known
        is_cluster = endpoints.deploy_mode == "cluster"
        if endpoints.master.startswith("spark://"):
            master = StandaloneMaster(
                client,
                endpoints.master_ui_urls,
                lambda: known.application_id,
                lambda: known.driver_id if is_cluster else None,
            )
            if not is_cluster:
                return [master]
            return [StandaloneSubmissions(client, endpoints.master_rest_urls, lambda: known.driver_id), master]
        if endpoints.master.startswith("yarn") and endpoints.yarn_urls:
            self._yarn = YarnResourceManager(
                client,
                endpoints.yarn_urls,
                endpoints.deploy_mode,
                # In cluster mode YARN's id is what the driver is found by.
                lambda: (known.driver_id if is_cluster else None) or known.application_id,
            )
            return [self._yarn]
        # In client mode the driver is no pod.
        if endpoints.master.startswith("k8s://") and is_cluster:
            namespace = endpoints.namespace
            return [Kubernetes(client, endpoints.kubernetes_api_url, namespace, lambda: known.driver_id)]
        return []

    def _locate(self) -> str | None:
        """Return the UI's address: of the connection, through YARN's proxy, or as the driver told it."""
        # On YARN the driver's own address redirects to the proxy.
        proxied = self._yarn.proxied_ui_url if self._yarn else None
        url = self._endpoints.driver_ui_of(self._known.application_id) or proxied or self._known.ui_url
        self._last_ui_url = url or self._last_ui_url
        return url


def sources_for(endpoints: Endpoints, known: Known, client: RestClient | None = None) -> Sources:
    """Return the sources that fit the master and the deploy mode.

    ========================  ==========================================  =======================================
    master, deploy mode       while it runs                               at the end
    ========================  ==========================================  =======================================
    ``local…``                driver UI                                   History Server
    ``spark://``, client      standalone master, driver UI                standalone master, History Server
    ``spark://``, cluster     REST server, standalone master, driver UI   both, History Server
    ``yarn``                  ResourceManager, driver UI                  ResourceManager, History Server
    ``k8s://``, client        driver UI                                   History Server
    ``k8s://``, cluster       Kubernetes, driver UI                       Kubernetes, History Server
    ========================  ==========================================  =======================================

    A source without an address is left out, but for the driver UI, whose address is learnt later.

    :raises SettingError: for Kerberos where ``requests-kerberos`` is not installed
    """
    return Sources(endpoints, known, client or endpoints.client())
