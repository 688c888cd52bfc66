"""Where the status of a connection's applications can be asked: the addresses, and how each of them is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from spark_lineage.launch.guard import Guard
from spark_lineage.settings import SettingError
from spark_lineage.watch.access import Access
from spark_lineage.watch.address import origin_of
from spark_lineage.watch.endpoint_settings import access_of, in_cluster_access, number_of, text_of, url_of, urls_of
from spark_lineage.watch.rest import READ_TIMEOUT_SECONDS, RestClient

DeployMode = Literal["client", "cluster"]

_APPLICATION_ID = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True)
class Endpoints:
    """The REST endpoints of one Spark connection; addresses have no ``/`` at their ends. ``repr`` shows no secret."""

    master: str
    deploy_mode: DeployMode
    driver_ui_url: str = ""
    """May hold ``{application_id}``; empty where the driver tells it."""
    history_server_url: str = ""
    master_ui_urls: tuple[str, ...] = ()
    master_rest_urls: tuple[str, ...] = ()
    yarn_urls: tuple[str, ...] = ()
    kubernetes_api_url: str = ""
    namespace: str = "default"
    access: Access = field(default_factory=Access)
    kubernetes_access: Access = field(default_factory=Access)
    timeout_seconds: float = READ_TIMEOUT_SECONDS

    @classmethod
    def of(
        cls,
        master: str,
        deploy_mode: str,
        extra: Mapping[str, Any],
        login: str | None = None,
        password: str | None = None,
    ) -> Endpoints:
        """Read the ``spark`` connection.

        :param master: as spark-submit is told it: ``local[2]``, ``spark://a:7077,b:7077``, ``yarn``, ``k8s://https://…``
        :param extra: of the connection; the keys are in ``docs/status.md``
        :param login: of the connection, for ``status_auth`` ``basic`` without ``status_username``
        :param password: the same, for ``status_password``
        :raises SettingError: when a value does not fit
        """
        if deploy_mode not in ("client", "cluster"):
            raise SettingError(f"the deploy mode of the Spark connection is {deploy_mode!r}; give client or cluster")
        access = access_of(extra, login, password)
        hosts = _hosts(master)
        scheme = text_of(extra, "rest-scheme") or "http"
        port = number_of(extra, "rest-port", 6066)
        if scheme not in ("http", "https"):
            raise SettingError(f"'rest-scheme' in the extra of the Spark connection is {scheme!r}; give http or https")
        kubernetes_api_url = url_of(extra, "kubernetes_api_url") or _kubernetes_api(master)
        return cls(
            master=master,
            deploy_mode=cast("DeployMode", deploy_mode),
            driver_ui_url=url_of(extra, "driver_ui_url"),
            history_server_url=url_of(extra, "history_server_url"),
            master_ui_urls=urls_of(extra, "master_ui_url") or tuple(f"http://{host}:8080" for host in hosts),
            master_rest_urls=tuple(f"{scheme}://{host}:{port:.0f}" for host in hosts),
            yarn_urls=urls_of(extra, "yarn_resourcemanager_webapp_address"),
            kubernetes_api_url=kubernetes_api_url,
            namespace=text_of(extra, "namespace") or "default",
            access=access,
            kubernetes_access=in_cluster_access(extra, access, kubernetes_api_url),
            timeout_seconds=number_of(extra, "status_timeout_seconds", READ_TIMEOUT_SECONDS),
        )

    def client(self) -> RestClient:
        """Return a client that sends the credentials to the hosts that the connection names, and to no other.

        :raises SettingError: for Kerberos where ``requests-kerberos`` is not installed
        """
        urls = [
            self.driver_ui_url,
            self.history_server_url,
            *self.master_ui_urls,
            *self.master_rest_urls,
            *self.yarn_urls,
        ]
        named = {origin_of(url): self.access for url in urls}
        named[origin_of(self.kubernetes_api_url)] = self.kubernetes_access
        return RestClient(named, others=Access(verify=self.access.verify), timeout_seconds=self.timeout_seconds)

    def driver_ui_of(self, application_id: str | None) -> str | None:
        """Return the address of a driver's UI that the connection names; None where it does not, or needs the id."""
        if "{application_id}" not in self.driver_ui_url:
            return self.driver_ui_url or None
        if application_id is None or not _APPLICATION_ID.fullmatch(application_id):
            return None
        return self.driver_ui_url.replace("{application_id}", application_id)


class Submitted(Protocol):
    """What is known of a submission: a launch handle is one."""

    @property
    def master(self) -> str:
        """As spark-submit is told it."""

    @property
    def deploy_mode(self) -> str:
        """``client`` or ``cluster``."""


def endpoints_of(
    submitted: Submitted, extra: Mapping[str, Any], login: str | None, password: str | None, guard: Guard
) -> Endpoints:
    """Return the endpoints of a submission; those that need no settings, where one of the connection does not fit."""
    master, deploy_mode = submitted.master, submitted.deploy_mode
    with guard("The cluster is not asked as the connection says", can_fail=False):
        return Endpoints.of(master, deploy_mode, extra, login, password)
    return Endpoints.of(master, "cluster" if deploy_mode == "cluster" else "client", {})


def _hosts(master: str) -> tuple[str, ...]:
    """Return the hosts of ``spark://a:7077,b:7077``; none for other masters."""
    if not master.startswith("spark://"):
        return ()
    addresses = (address.strip() for address in master.removeprefix("spark://").split(","))
    return tuple(re.sub(r":\d+$", "", address) for address in addresses if address)


def _kubernetes_api(master: str) -> str:
    if not master.startswith("k8s://"):
        return ""
    address = master.removeprefix("k8s://").rstrip("/")
    # As Spark has it (KubernetesUtils.parseMasterUrl, Utils.checkAndGetK8sMasterUrl).
    return address if "://" in address else f"https://{address}"
