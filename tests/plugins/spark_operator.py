"""The Spark operator of a cluster, as far as Airflow sees it: it runs a real ``spark-submit`` for each object.

Kubernetes takes any ``SparkApplication``, and what becomes of its driver is in ``status.applicationState``.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
from lineage_backends.kubernetes import NAMESPACE, Kubernetes

GROUP, VERSION, PLURAL = "sparkoperator.k8s.io", "v1beta2", "sparkapplications"
APPLICATIONS = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_STATE_OF = {"Pending": "SUBMITTED", "Running": "RUNNING", "Succeeded": "COMPLETED", "Failed": "FAILED"}
_SECONDS = 0.3


def _definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": VERSION, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"kind": "SparkApplication", "plural": PLURAL, "singular": "sparkapplication"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Kubernetes keeps this group to itself.
        "metadata": {"name": f"{PLURAL}.{GROUP}", "annotations": {"api-approved.kubernetes.io": "unapproved, tests"}},
        "spec": spec,
    }


class SparkOperator:
    """Its ``seen`` are the objects, by name, as they were created; ``env`` is that of ``spark-submit``."""

    def __init__(self, cluster: Kubernetes, env: Mapping[str, str]) -> None:
        self.seen: dict[str, dict[str, Any]] = {}
        self._cluster, self._env = cluster, env
        self._stopping = threading.Event()

    @contextmanager
    def running(self) -> Iterator[SparkOperator]:
        """Run it; the definition of its objects stays."""
        try:
            self._cluster.ask("GET", f"{_CRDS}/{PLURAL}.{GROUP}")
        except requests.HTTPError:
            self._cluster.ask("POST", _CRDS, _definition())
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._stopping.set()
            thread.join()

    def there(self) -> list[str]:
        """The names of the objects that are not deleted."""
        return [one["metadata"]["name"] for one in self._cluster.ask("GET", APPLICATIONS)["items"]]

    def clear(self) -> None:
        """Delete all objects: another operator would submit them again."""
        self._cluster.ask("DELETE", APPLICATIONS)

    def _run(self) -> None:
        while not self._stopping.wait(_SECONDS):
            try:
                found = {one["metadata"]["name"]: one for one in self._cluster.ask("GET", APPLICATIONS)["items"]}
                drivers = {one["metadata"]["name"]: one for one in self._cluster.drivers()}
                for name in self.seen.keys() - found.keys():
                    # Kubernetes does so: the object owns the pod.
                    metadata = drivers.get(f"{name}-driver", {}).get("metadata", {"deletionTimestamp": ""})
                    if "deletionTimestamp" not in metadata:
                        self._cluster.delete(f"{name}-driver")
                for name, one in found.items():
                    if name not in self.seen:
                        self.seen[name] = one
                        self._report(name, "SUBMITTED", *self._submit(name, one["spec"]))
                    elif (pod := drivers.get(f"{name}-driver")) is not None:
                        state = _STATE_OF[pod["status"]["phase"]]
                        self._report(name, state, pod["metadata"]["labels"]["spark-app-selector"])
            except requests.RequestException:
                continue  # what was looked at is gone, or is being defined

    def _submit(self, name: str, spec: Mapping[str, Any]) -> tuple[str, str]:
        """Submit the driver of an object, and return why that failed, empty where it did not."""
        driver = spec.get("driver", {})
        conf = {
            **spec.get("sparkConf", {}),
            "spark.app.name": name,
            "spark.kubernetes.namespace": NAMESPACE,
            "spark.kubernetes.driver.pod.name": f"{name}-driver",
            "spark.kubernetes.container.image": spec["image"],
            "spark.kubernetes.submission.waitAppCompletion": "false",
            **{f"spark.kubernetes.driver.label.{key}": value for key, value in driver.get("labels", {}).items()},
            **{f"spark.kubernetes.driverEnv.{one['name']}": one["value"] for one in driver.get("env", ())},
        }
        command = ["spark-submit", "--master", f"k8s://{self._cluster.url}", "--deploy-mode", "cluster"]
        command += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        command += [spec["mainApplicationFile"], *spec.get("arguments", ())]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False, timeout=90)
        return "", done.stderr if done.returncode else ""

    def _report(self, name: str, state: str, application_id: str, error: str = "") -> None:
        state = "FAILED" if error else state
        status = {"applicationState": {"state": state, "errorMessage": error}, "sparkApplicationId": application_id}
        self._cluster.ask("PATCH", f"{APPLICATIONS}/{name}/status", {"status": status}, kind="merge-patch+json")
