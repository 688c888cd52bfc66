"""What a task of ``LivyOperator`` does while Livy takes its batch, or refuses it; the answers are made up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from http_server import Handler, serving

if TYPE_CHECKING:
    from pathlib import Path

    from laboratory import Bench, Outcome

pytest.importorskip("airflow.providers.apache.livy")
Run = Callable[..., "Outcome"]


class Livy(Handler):
    """Takes one batch, which succeeds at once; refuses it where ``status`` says so."""

    status, delay_seconds = 201, 0.0
    asked: list[str]
    posting: Path

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append(f"{self.command} {self.path}")
        if self.command == "POST":
            self.posting.touch()
            time.sleep(self.delay_seconds)
        answer = {"id": 7, "state": "success", "msg": "deleted", "log": [], "total": 0, "from": 0}
        status = self.status if self.command == "POST" else 200
        self.answer(json.dumps(answer).encode(), status, {"Content-Type": "application/json"})

    do_GET = do_POST = do_DELETE = _answer


@pytest.fixture
def livy(tmp_path: Path) -> type[Livy]:
    """A server, for ``run`` to start."""
    return type("Own", (Livy,), {"asked": [], "posting": tmp_path / "posting"})


@pytest.fixture
def run(bench: Bench, livy: type[Livy]) -> Iterator[Run]:
    """Run a task that waits for its batch."""
    bench.operator, bench.application = "lineage_livy:LineageLivyOperator", {"file": "job.py"}
    with serving(livy) as url:
        host, port = url.removeprefix("http://").split(":")
        connection = {"conn_type": "livy", "host": host, "port": int(port)}
        bench.env |= {"AIRFLOW_CONN_LIVY_DEFAULT": json.dumps(connection)}
        bench.env |= {"AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": str(bench.root)}
        yield lambda **arguments: bench.run(**{"polling_interval": 0.1, **arguments})


def test_batch_was_submitted_by_airflow(run: Run) -> None:
    outcome = run()
    assert outcome.lineage is not None, outcome.printed[-3000:]
    first, last = outcome.lineage["run_facets"]["sparkLineage_status"]["transitions"]
    assert (first["newStatus"], first["source"]) == ("SUBMITTED", "Airflow")
    assert (last["newStatus"], last["source"]) == ("FINISHED", "Livy")


def test_batch_that_is_refused_was_not_submitted(run: Run, livy: type[Livy]) -> None:
    livy.status = 400
    outcome = run()
    assert outcome.error is not None
    assert "most likely causes" not in outcome.printed


def test_kill_while_the_batch_is_posted_deletes_it(run: Run, livy: type[Livy], bench: Bench) -> None:
    livy.delay_seconds = 3
    with bench.laboratory.killing(livy.posting):
        outcome = run()
    assert "DELETE /batches/7" in livy.asked, outcome.printed[-3000:]
    assert outcome.lineage is not None
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT"
