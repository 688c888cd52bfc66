"""A kubelet of the tests: runs the containers of Spark's pods as processes of its own user, and reports how they do.

It does what a kubelet does as far as Spark sees it: binds a pod to its node, makes the volumes of the ConfigMap that
Spark's submission made, starts what the entry point of Spark's image starts with the arguments and the environment of
the pod, reports the phase and the state of the container, gives the log to the API server, and ends a pod that is
deleted with SIGTERM before it is gone. There is no image, no isolation and no DNS: a driver is found on the loopback.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests

from lineage_backends.certificates import Certificates
from lineage_backends.processes import HOST

NODE = "node"
PODS = "/api/v1/pods?labelSelector=spark-role+in+(driver,executor)"
_SECONDS = 0.1
_GRACE_SECONDS = 5
# A pod is gone or changed meanwhile; the API server starts, or has lost its etcd.
_PASSING = {404, 409, 500, 503}
_PATCH = "strategic-merge-patch+json"


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    logging: threading.Thread
    started: str
    kill_at: float | None = None
    is_reported: bool = False
    reason: Mapping[str, str] = field(default_factory=dict)


class Kubelet:
    """One node.

    ``env`` is what the image of the drivers would have: where Spark is, and how its JVM is started.

    :param ask: asks the API server: method, path, content
    """

    def __init__(self, ask: Callable[..., Any], home: Path, certificates: Certificates) -> None:
        self.env: Mapping[str, str] = os.environ
        self._ask = ask
        self._home = home
        self._pods: dict[str, _Running] = {}
        self.seen: dict[str, list[dict[str, Any] | None]] = {}
        """What the API server has said of each pod, one after another; None of one that is gone."""
        self._stopping = threading.Event()
        self._logs = _log_server(home, certificates)

    @contextlib.contextmanager
    def running(self) -> Iterator[Kubelet]:
        """Register the node, and run what is given to it."""
        ports = {"kubeletEndpoint": {"Port": self._logs.server_address[1]}}
        status = {"addresses": [{"type": "InternalIP", "address": HOST}], "daemonEndpoints": ports}
        self._ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
        self._ask("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status}, kind=_PATCH)
        threads = [threading.Thread(target=self._run), threading.Thread(target=self._logs.serve_forever)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stopping.set()
            self._logs.shutdown()
            self._logs.server_close()
            for thread in threads:
                thread.join()
            for one in self._pods.values():
                _signal(one, signal.SIGKILL)
                one.process.wait()

    def kill(self, name: str, **reason: str) -> None:
        """Kill the driver of a pod.

        :param reason: ``reason`` and ``message`` of a pod that is evicted
        """
        one = self._pods[name]
        one.reason = reason
        _signal(one, signal.SIGKILL)

    def _run(self) -> None:
        while not self._stopping.wait(_SECONDS):
            try:
                pods = self.look()
                for name in self._pods.keys() - pods.keys():
                    _signal(self._pods[name], signal.SIGKILL)
                for name, pod in pods.items():
                    self._look_after(name, pod)
            except requests.ConnectionError:
                continue  # the API server is away
            except requests.HTTPError as error:
                if error.response.status_code not in _PASSING:
                    raise

    def look(self) -> dict[str, dict[str, Any]]:
        """Return the pods that are there, and keep what is new of them."""
        pods = {one["metadata"]["name"]: one for one in self._ask("GET", PODS)["items"]}
        for name in self.seen.keys() | pods.keys():
            seen, pod = self.seen.setdefault(name, []), pods.get(name)
            if not seen or seen[-1] != pod:
                seen.append(pod)
        return pods

    def _look_after(self, name: str, pod: dict[str, Any]) -> None:
        metadata, one = pod["metadata"], self._pods.get(name)
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{name}"
        is_deleted = "deletionTimestamp" in metadata
        if one is None:
            if pod["status"]["phase"] == "Pending" and not is_deleted:
                binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}}
                if "nodeName" not in pod["spec"]:
                    self._ask("POST", f"{path}/binding", binding)
                # Spark makes the ConfigMap of a pod after the pod: until then this is a 404.
                one = self._pods[name] = self._start(pod)
                self._report(path, pod, "Running", {"running": {"startedAt": one.started}})
            return
        if is_deleted and one.kill_at is None:
            one.kill_at = time.monotonic() + _GRACE_SECONDS
            _signal(one, signal.SIGTERM)
        code = one.process.poll()
        if code is None:
            if one.kill_at is not None and time.monotonic() > one.kill_at:
                _signal(one, signal.SIGKILL)
            return
        if not one.is_reported:
            one.logging.join(_GRACE_SECONDS)
            code = code if code >= 0 else 128 - code
            words = {"exitCode": code, "reason": "Error" if code else "Completed"}
            end = {**words, "startedAt": one.started, "finishedAt": _now()}
            self._report(path, pod, "Failed" if code else "Succeeded", {"terminated": end}, **one.reason)
            one.is_reported = True
        if is_deleted:
            self._ask("DELETE", path, {"gracePeriodSeconds": 0})

    def _report(self, path: str, pod: dict[str, Any], phase: str, state: dict[str, Any], **reason: str) -> None:
        (container,), is_ready = pod["spec"]["containers"], phase == "Running"
        known = {"image": container["image"], "imageID": "", "restartCount": 0, "ready": is_ready}
        statuses = [{"name": container["name"], **known, "state": state}]
        # A driver waits for its pod to be ready before it asks for executors.
        conditions = [{"type": "Ready", "status": str(is_ready)}]
        status = {"phase": phase, "podIP": HOST, "hostIP": HOST, "conditions": conditions, **reason}
        self._ask("PATCH", f"{path}/status", {"status": {**status, "containerStatuses": statuses}}, kind=_PATCH)

    def _start(self, pod: dict[str, Any]) -> _Running:
        metadata, (container,) = pod["metadata"], pod["spec"]["containers"]
        folder = self._home / "pods" / metadata["name"]
        folder.mkdir(parents=True, exist_ok=True)
        mounts = self._mounted(pod, container, folder)
        # What Kubernetes fills in: the name of the pod and its address.
        fields = {"metadata.name": metadata["name"], "status.podIP": HOST}
        env = {**self.env}
        for each in container.get("env", ()):
            source = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            env[each["name"]] = fields[source] if source else _within(each.get("value", ""), mounts)
        command = _command(env, *(_within(each, mounts) for each in container["args"]))
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        process = subprocess.Popen(
            [*guard, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
        logging = threading.Thread(target=_keep_log, args=(process, folder / "log"))
        logging.start()
        return _Running(process, logging, _now())

    def _mounted(self, pod: dict[str, Any], container: dict[str, Any], folder: Path) -> dict[str, str]:
        """Make the volumes of a container as folders; where each is, by the path at which it is mounted."""
        namespace, places = pod["metadata"]["namespace"], {}
        for volume in pod["spec"].get("volumes", ()):
            place = places[volume["name"]] = folder / volume["name"]
            place.mkdir(exist_ok=True)
            if source := volume.get("configMap"):
                found = self._ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/{source['name']}")
                for key, text in found["data"].items():
                    (place / key).write_text(text)
        return {each["mountPath"]: str(places[each["name"]]) for each in container.get("volumeMounts", ())}


def _command(env: Mapping[str, str], entry: str, *arguments: str) -> list[str]:
    """Return what the entry point of Spark's image runs."""
    if entry == "driver":
        conf = {"driver.bindAddress": HOST, "driver.host": HOST}
        options = [part for key, value in conf.items() for part in ("--conf", f"spark.{key}={value}")]
        return ["spark-submit", *options, "--deploy-mode", "client", *arguments]
    java = [value for key, value in sorted(env.items()) if key.startswith("SPARK_JAVA_OPT_")]
    memory, main_class = (
        env["SPARK_EXECUTOR_MEMORY"],
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    )
    told = {
        "driver-url": "SPARK_DRIVER_URL",
        "executor-id": "SPARK_EXECUTOR_ID",
        "cores": "SPARK_EXECUTOR_CORES",
        "app-id": "SPARK_APPLICATION_ID",
        "hostname": "SPARK_EXECUTOR_POD_IP",
        "resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
        "podName": "SPARK_EXECUTOR_POD_NAME",
    }
    options = [part for flag, name in told.items() for part in (f"--{flag}", env[name])]
    jars = f"{env['SPARK_HOME']}/jars/*"
    return ["java", *java, f"-Xms{memory}", f"-Xmx{memory}", "-cp", jars, main_class, *options]


def _within(text: str, mounts: Mapping[str, str]) -> str:
    """Return a path with the place of the volume that it is in; a text without one is returned as it is."""
    for path, place in mounts.items():
        if text == path or text.startswith(f"{path}/"):
            return place + text.removeprefix(path)
    return text


def _signal(one: _Running, number: signal.Signals) -> None:
    if one.process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.process.pid, number)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _keep_log(process: subprocess.Popen[bytes], path: Path) -> None:
    """Write what a container prints, each line after its time."""
    assert process.stdout is not None
    with process.stdout, path.open("wb", buffering=0) as log:
        for line in process.stdout:
            log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z ".encode() + line)


def _log_server(home: Path, certificates: Certificates) -> ThreadingHTTPServer:
    """Answer ``/containerLogs/{namespace}/{pod}/{container}`` over TLS to those with a certificate.

    Of its parameters: ``tailLines``, ``timestamps``, ``sinceTime`` (in whole seconds) and ``limitBytes``.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            _, kind, _, pod, _ = url.path.split("/")
            log = home / "pods" / pod / "log"
            is_there = kind == "containerLogs" and log.exists()
            asked = {key: values[0] for key, values in parse_qs(url.query).items()}
            since, lines = asked.get("sinceTime", "").encode()[:19], []
            if is_there:
                with log.open("rb") as stream:
                    lines = [one for one in stream if one[:19] >= since]
            if asked.get("timestamps") != "true":
                lines = [one.partition(b" ")[2] for one in lines]
            body = b"".join(lines[-int(asked.get("tailLines", 0)) :])
            body = body[: int(asked.get("limitBytes", len(body)))]
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    context: ssl.SSLContext = certificates.server_context(wants_client=True)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server
