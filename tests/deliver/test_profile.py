"""An event in the namespace of its connection."""

from __future__ import annotations

import json
from typing import Any

from spark_lineage.deliver.profile import Profile


def job(namespace: str) -> dict[str, Any]:
    return {"job": {"namespace": namespace, "name": "shop"}}


def test_encoded_moves_the_job_and_parents_of_its_namespace_and_no_others() -> None:
    """A DAG that another Airflow has triggered has its parent there."""
    event = {**job("airflow"), "run": {"facets": {"parent": {**job("airflow"), "root": job("another-airflow")}}}}
    moved = {**job("prod"), "run": {"facets": {"parent": {**job("prod"), "root": job("another-airflow")}}}}
    assert json.loads(Profile("prod").encoded(json.dumps(event).encode())) == moved
