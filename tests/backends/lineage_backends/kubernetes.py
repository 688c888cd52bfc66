"""A Kubernetes of one's own on the loopback: a real ``kube-apiserver`` with its etcd, and a kubelet of the tests.

No container runs, and nothing but the drivers of Spark does: ``kubelet.py`` says how.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from lineage_backends.certificates import Certificates, make_certificates
from lineage_backends.kubelet import Kubelet
from lineage_backends.kubernetes_binaries import binaries
from lineage_backends.processes import HOST, Server, free_ports, listens

NAMESPACE = "jobs"
API_CONNECTION = "kubernetes_api"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
START_SECONDS = 60
STRANGER = "stranger"
"""A user who is known, and may do nothing."""


@dataclass
class Kubernetes:
    """Its address, and how it is asked; ``kubeconfig`` and ``token`` are those of a user who may do all."""

    url: str
    token: str
    stranger_token: str
    authority: Path
    kubeconfig: Path
    _server: list[Server]
    _command: list[str | Path]
    _log: Path
    kubelet: Kubelet = field(init=False)

    @property
    def env(self) -> dict[str, str]:
        """What a worker needs so that spark-submit, the Spark provider and we find the cluster."""
        asked = {"conn_type": "http", "password": self.token, "extra": {"verify": str(self.authority)}}
        return {
            "KUBECONFIG": str(self.kubeconfig),
            f"AIRFLOW_CONN_{API_CONNECTION.upper()}": json.dumps(asked),
            "AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
            "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE": str(self.kubeconfig),
        }

    def connection(self, deploy_mode: str, **extra: Any) -> dict[str, Any]:
        """Return a Spark connection; ``extra`` is added to its extra."""
        asked = {"namespace": NAMESPACE, "status_conn_id": API_CONNECTION}
        return {
            "conn_type": "spark",
            "host": f"k8s://{self.url}",
            "extra": {"deploy-mode": deploy_mode} | asked | extra,
        }

    def properties(self, deploy_mode: str) -> dict[str, str]:
        """Return the Spark properties that a job needs here."""
        return {
            **({"spark.driver.host": HOST} if deploy_mode == "client" else {}),
            "spark.kubernetes.container.image": "spark",
            "spark.kubernetes.driver.master": self.url,
            "spark.executor.instances": "1",
            "spark.executor.memory": "512m",
        }

    def image(self, env: Mapping[str, str]) -> None:
        """Give the containers that start from now on an environment, as their image has it, and an account.

        :param env: of ``spark-submit``, which is on its ``PATH``, with ``SPARK_HOME``
        """
        own = {key: value for key, value in env.items() if not key.startswith("AIRFLOW")}
        self.kubelet.env = {**own, "KUBECONFIG": str(self.kubeconfig)}

    def ask(self, method: str, path: str, content: Any = None, *, kind: str = "json", token: str = "") -> Any:
        """Ask the API server.

        :param kind: of the content: a ``json``, or a patch (``strategic-merge-patch+json``)
        :raises requests.HTTPError: when it refuses
        """
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": f"application/{kind}"}
        data = None if content is None else json.dumps(content)
        answer = requests.request(
            method, f"{self.url}{path}", headers=headers, data=data, verify=str(self.authority), timeout=20
        )
        answer.raise_for_status()
        return answer.json() if "json" in answer.headers["Content-Type"] else answer.text

    def drivers(self) -> list[dict[str, Any]]:
        """The pods of all drivers."""
        found: list[dict[str, Any]] = self.ask("GET", f"{PODS}?labelSelector=spark-role%3Ddriver")["items"]
        return found

    def delete(self, pod: str, seconds: int = 5) -> None:
        """Delete a pod, whose containers have so many seconds to end."""
        self.ask("DELETE", f"{PODS}/{pod}", {"gracePeriodSeconds": seconds})

    def start(self) -> None:
        """Start the API server, and wait until it answers."""
        server = Server.start("the API server", self._command, self._log)
        self._server.append(server)
        server.wait_until(self._is_ready, START_SECONDS)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Stop the API server; what it knows is in etcd."""
        while self._server:
            self._server.pop().stop(how)

    def _is_ready(self) -> bool:
        with suppress(requests.RequestException):
            return bool(self.ask("GET", "/readyz") == "ok")
        return False


@contextmanager
def kubernetes() -> Iterator[Kubernetes]:
    """Run one; its data is gone afterwards.

    :raises NotInstalledError: when its servers cannot be built here
    """
    programs = binaries()
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="spark-lineage-kubernetes-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        certificates = make_certificates(home)
        port, client, peer = free_ports(3)
        _start_etcd(stack, programs / "etcd", home, client, peer)
        tokens = {"operator": secrets.token_hex(16), STRANGER: secrets.token_hex(16)}
        groups = {"operator": "system:masters", STRANGER: ""}
        lines = [f'{token},{name},{name},"{groups[name]}"\n' for name, token in tokens.items()]
        (home / "tokens.csv").write_text("".join(lines))
        url = f"https://{HOST}:{port}"
        kubeconfig = _kubeconfig(home / "kubeconfig", url, tokens["operator"], certificates)
        command = _command(programs / "kube-apiserver", home, certificates, port, client)
        found = Kubernetes(
            url,
            tokens["operator"],
            tokens[STRANGER],
            certificates.authority,
            kubeconfig,
            [],
            command,
            home / "apiserver.log",
        )
        stack.callback(found.stop)
        found.start()
        found.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        found.kubelet = Kubelet(found.ask, home, certificates)
        stack.enter_context(found.kubelet.running())
        yield found


def _start_etcd(stack: ExitStack, program: Path, home: Path, client: int, peer: int) -> None:
    addresses = {name: f"http://{HOST}:{port}" for name, port in (("client", client), ("peer", peer))}
    options = {
        "data-dir": home / "etcd",
        "listen-client-urls": addresses["client"],
        "advertise-client-urls": addresses["client"],
        "listen-peer-urls": addresses["peer"],
        "initial-advertise-peer-urls": addresses["peer"],
        "initial-cluster": f"default={addresses['peer']}",
        "log-level": "error",
    }
    arguments = [f"--{key}={value}" for key, value in options.items()]
    server = Server.start("etcd", [program, *arguments, "--unsafe-no-fsync"], home / "etcd.log")
    stack.callback(server.stop)
    server.wait_until(lambda: listens(client), START_SECONDS)


def _command(program: Path, home: Path, certificates: Certificates, port: int, etcd: int) -> list[str | Path]:
    options = {
        "etcd-servers": f"http://{HOST}:{etcd}",
        "bind-address": HOST,
        "secure-port": port,
        "cert-dir": home / "apiserver",
        "tls-cert-file": certificates.server,
        "tls-private-key-file": certificates.server_key,
        "token-auth-file": home / "tokens.csv",
        "authorization-mode": "RBAC",
        # Nobody makes the accounts of services here, which a pod would wait for.
        "disable-admission-plugins": "ServiceAccount",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": certificates.server,
        "service-account-signing-key-file": certificates.server_key,
        "service-cluster-ip-range": "10.0.0.0/24",
        "endpoint-reconciler-type": "none",
        "kubelet-preferred-address-types": "InternalIP",
        "kubelet-certificate-authority": certificates.authority,
        "kubelet-client-certificate": certificates.client,
        "kubelet-client-key": certificates.client_key,
    }
    return [program, *(f"--{key}={value}" for key, value in options.items())]


def _kubeconfig(path: Path, url: str, token: str, certificates: Certificates) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "clusters": [
            {"name": "tests", "cluster": {"server": url, "certificate-authority": str(certificates.authority)}}
        ],
        "users": [{"name": "operator", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "operator", "namespace": NAMESPACE}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))  # YAML, too
    return path
