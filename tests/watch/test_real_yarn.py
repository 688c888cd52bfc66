"""Real ResourceManagers out of Maven Central, an active and a standby one, without any machine to run programs on.

What they say of programs that run is in ``test_yarn``, in the words of a ResourceManager of the same version.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dialogues import http_connection, polled
from lineage_backends.fixtures import or_skip
from lineage_backends.hadoop import JVM, RESOURCE_MANAGER, hadoop_jars, write_site
from lineage_backends.kdc import Kdc, kdc
from lineage_backends.processes import free_ports

from spark_lineage.http_client import NoAnswerError, Request
from spark_lineage.launch.driver import Driver
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources

APPS = "/ws/v1/cluster/apps"

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture(scope="module")
def start(processes: Any, spark_env: dict[str, str]) -> Callable[..., str]:
    """Starts a ResourceManager and gives its address."""

    def start(name: str, *, is_standby: bool, realm: Kdc | None = None) -> str:
        conf: Path = processes.folder / name
        login, options = {"type": "simple", "simple.anonymous.allowed": "true"}, list(JVM)
        if realm is not None:
            login = {"type": "kerberos", "kerberos.principal": realm.principal, "kerberos.keytab": str(realm.keytab)}
            options.append(f"-Djava.security.krb5.conf={realm.config}")
        write_site(
            conf,
            "core-site",
            {
                "hadoop.tmp.dir": str(conf / "data"),
                "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
                **{f"hadoop.http.authentication.{key}": value for key, value in login.items()},
            },
        )
        queues = {"root.queues": "default", "root.default.capacity": "100"}
        write_site(
            conf, "capacity-scheduler", {f"yarn.scheduler.capacity.{key}": value for key, value in queues.items()}
        )
        services = ("webapp.address", "address", "scheduler.address", "resource-tracker.address", "admin.address")
        prefix, ports = "yarn.resourcemanager", free_ports(len(services) * 2)
        addresses = {f"{prefix}.{key}": f"127.0.0.1:{port}" for key, port in zip(services, ports, strict=False)}
        if is_standby:
            others = zip(services, ports[len(services) :], strict=True)
            addresses = {f"{key}.rm1": value for key, value in addresses.items()}
            addresses |= {f"{prefix}.{key}.rm2": f"127.0.0.1:{port}" for key, port in others}
            addresses |= {f"{prefix}.ha.enabled": "true", f"{prefix}.ha.automatic-failover.enabled": "false"}
            addresses |= {f"{prefix}.ha.rm-ids": "rm1,rm2", f"{prefix}.ha.id": "rm1", f"{prefix}.cluster-id": "test"}
        write_site(conf, "yarn-site", {f"{prefix}.bind-host": "127.0.0.1", **addresses})
        class_path = os.pathsep.join([str(conf), f"{hadoop_jars()}/*"])
        processes.start(name, ["java", *options, "-cp", class_path, RESOURCE_MANAGER], spark_env)
        url = f"http://{'127.0.0.1' if realm is None else 'localhost'}:{ports[0]}"

        def is_up() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", ports[0])) == 0

        processes.wait_for(f"the {name} ResourceManager", is_up)
        return url

    return start


@pytest.fixture(scope="module")
def realm() -> Iterator[Kdc]:
    """A realm of Kerberos."""
    with or_skip(kdc()) as running:
        yield running


@pytest.fixture(scope="module")
def urls(start: Callable[..., str]) -> list[str]:
    """The addresses of a standby and of an active ResourceManager."""
    return [start("standby", is_standby=True), start("active", is_standby=False)]


def ask(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}?user.name=tester", content, headers, method=method)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - the loopback
        return json.loads(answer.read() or b"null")


def submit(url: str, queue: str) -> str:
    application_id = str(ask("POST", f"{url}{APPS}/new-application")["application-id"])
    program = {"commands": {"command": "true"}}
    asked = {"application-id": application_id, "application-name": "test", "queue": queue, "am-container-spec": program}
    ask("POST", f"{url}{APPS}", {**asked, "resource": {"memory": 256, "vCores": 1}})
    return application_id


def source(urls: list[str], application_id: str, deploy_mode: str = "cluster") -> Any:
    endpoints = Endpoints("yarn", deploy_mode, {"yarn_resourcemanager_webapp_address": ",".join(urls)})
    (manager,) = Sources(endpoints, Driver(application_id=application_id)).at_the_end
    return manager


def test_an_application_that_waits_and_is_killed(processes: Any, urls: list[str]) -> None:
    application_id = submit(urls[1], "default")
    manager = source(urls, application_id)
    told: list[tuple[str, str]] = []

    def waits_for(state: str) -> Callable[[], bool]:
        def is_told() -> bool:
            reports = polled(manager)
            told.extend((one.subject, one.status) for one in reports)
            assert {one.subject_id for one in reports} == {application_id}
            return bool(reports[-1].detail == state)

        return is_told

    processes.wait_for("the state", waits_for("ACCEPTED"))
    ask("PUT", f"{urls[1]}{APPS}/{application_id}/state", {"state": "KILLED"})
    processes.wait_for("the state", waits_for("KILLED"))
    for subject in ("DRIVER", "APPLICATION"):
        assert list(dict.fromkeys(status for one, status in told if one == subject)) == [
            "SUBMITTED",
            "WAITING",
            "KILLED",
        ]
    last = polled(manager)[-1]
    assert re.fullmatch(r"Application \S+ was killed by user tester.*", last.exception)


def test_an_application_that_is_refused(processes: Any, urls: list[str]) -> None:
    manager = source(urls, submit(urls[1], "nowhere"), "client")
    processes.wait_for("the refusal", lambda: polled(manager)[-1].status == "FAILED")
    last = polled(manager)[-1]
    assert (last.subject, last.detail) == ("APPLICATION", "FAILED")
    assert "to unknown queue: nowhere" in last.exception


def test_an_application_that_nobody_knows(urls: list[str]) -> None:
    with pytest.raises(NoAnswerError, match=f"{urls[0]}.* HTTP 307; {urls[1]}.* HTTP 404"):
        polled(source(urls, "application_1_0001"))


def test_resource_manager_with_kerberos_answers_whom_the_kdc_knows(
    start: Callable[..., str], realm: Kdc, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = start("kerberos", is_standby=False, realm=realm)
    info = f"{url}/ws/v1/cluster/info"
    extra = {"yarn_resourcemanager_webapp_address": url, "status_conn_id": "status_http"}
    secure = Endpoints("yarn", "cluster", extra, http_connection(kerberos=True))
    with pytest.raises(NoAnswerError, match="HTTP 401") as refused:
        get_json(Endpoints("yarn", "cluster", extra, http_connection()).client(), info)
    assert refused.value.http_status == 401
    for name, value in realm.ticket("airflow").items():
        monkeypatch.setenv(name, value)
    client = secure.client()
    assert get_json(client, info)["clusterInfo"]["state"] == "STARTED"
    assert asyncio.run(secure.async_client().send(Request(info)))
    # The cookie of the first answer is as good as the ticket, and goes to this server alone.
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nonexistent")
    assert get_json(client, info)["clusterInfo"]["state"] == "STARTED"
    with pytest.raises(NoAnswerError, match="HTTP 401, and asks for a ticket of Kerberos"):
        get_json(secure.client(), info)
    assert not [record for record in caplog.records if record.name.startswith("httpx_gssapi")]
