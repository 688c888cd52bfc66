"""Programs in the pods of a real Kubernetes: what their tasks say of them."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.truth]

def test_probe(on_kubernetes, statuses):
    outcome = on_kubernetes.run("cluster", "success", status_poll_interval=1)
    print(outcome.printed)
    print(outcome.error)
    print(outcome.lineage)
    assert 0
