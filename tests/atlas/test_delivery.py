"""An Atlas that is away, the commands, and the doctor: through the outbox and a real Airflow."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from atlas_events import Atlas, dataset, event, related, send
from http_server import Handler, serving
from lineage_backends.processes import free_ports

from spark_lineage.atlas.command import prune
from spark_lineage.atlas.rest import AtlasRest
from spark_lineage.atlas.sender import AtlasSender
from spark_lineage.atlas.types import TASK
from spark_lineage.deliver.outbox import Outbox, flush
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import Later

if TYPE_CHECKING:
    from airflow_home import Airflow
    from warm_python import WarmPython

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]

Sender = Callable[..., AtlasSender]
Command = Callable[..., subprocess.CompletedProcess[str]]
DAG = """
from datetime import datetime
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG("{dag_id}", schedule=None, start_date=datetime(2026, 1, 1)):
    EmptyOperator(task_id="kept")
"""


def connection(atlas: Atlas, url: str = "") -> str:
    name, password = atlas.login
    return json.dumps({"conn_type": "atlas", "host": url or atlas.url, "login": name, "password": password})


def test_what_atlas_missed_comes_in_order_when_it_is_back(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: str
) -> None:
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR", str(tmp_path))
    (closed,) = free_ports(1)
    monkeypatch.setenv("AIRFLOW_CONN_ATLAS", connection(atlas, f"http://127.0.0.1:{closed}"))
    outbox = Outbox(tmp_path)
    jobs = [f"{job}{number}" for number in range(3)]
    for each in jobs:
        outbox.spool("atlas").put(Outgoing.of(json.dumps(event(each, "START")).encode()))
        end = event(each, "COMPLETE", inputs=[dataset(f"/{each}/in")], outputs=[dataset(f"/{each}/out")])
        outbox.spool("atlas").put(Outgoing.of(json.dumps(end).encode()))
        assert not [one for one in flush(tmp_path, seconds=5).values() if one.sent]
    (waiting,) = outbox.destinations()
    assert (waiting.waiting, waiting.dead) == (6, 0)
    monkeypatch.setenv("AIRFLOW_CONN_ATLAS", connection(atlas))
    delivered = flush(tmp_path, seconds=60)["atlas"]
    assert (delivered.sent, delivered.waiting, delivered.refused) == (6, 0, 0)
    for each in jobs:
        process = atlas.there(TASK, f"{each}@prod")
        assert process["attributes"]["state"] == "COMPLETE"
        assert (related(process, "inputs"), related(process, "outputs")) == ({f"/{each}/in"}, {f"/{each}/out"})


@pytest.fixture
def spark_lineage(airflow: Airflow, atlas: Atlas, warm_python: WarmPython) -> Command:
    """Run the command in the Airflow that has the connection ``atlas``."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = airflow.env | {"AIRFLOW_CONN_ATLAS": connection(atlas)}
        return warm_python.run("-m", "spark_lineage.cli", *arguments, env=env)

    return run


def test_prune_deletes_the_tasks_that_no_dag_has(
    atlas: Atlas, sender: Sender, job: str, airflow: Airflow, spark_lineage: Command
) -> None:
    dag_id = job.partition(".")[0]
    names = [f"{dag_id}.kept", f"{dag_id}.gone", f"{dag_id}_gone.task"]
    outputs = [dataset(f"/{job}/out")]
    send(sender(), *(event(name, "COMPLETE", outputs=outputs, namespace=job) for name in names))
    send(sender(), event(f"{dag_id}.elsewhere", "START"))
    guids = [atlas.there(TASK, f"{name}@{job}")["guid"] for name in names]
    prune = ("atlas", "prune", "--conn-id", "atlas", "--namespace", job)
    done = spark_lineage(*prune)
    assert done.returncode == 2
    assert "Airflow's database has no DAG" in done.stderr

    (airflow.home / "dags" / "dag.py").write_text(DAG.format(dag_id=dag_id))
    airflow.command("dags", "reserialize")
    done = spark_lineage(*prune, "--dry-run")
    gone = [*names[1:], f"{dag_id}_gone"]
    assert sorted(done.stdout.splitlines()) == sorted(f"would delete {name}" for name in gone), done.stderr
    assert [atlas.status(guid) for guid in guids] == ["ACTIVE"] * 3

    done = spark_lineage(*prune)
    assert sorted(done.stdout.splitlines()) == sorted(f"deleted {name}" for name in gone), done.stderr
    assert [atlas.status(guid) for guid in guids] == ["ACTIVE", "DELETED", "DELETED"]
    assert atlas.there("fs_path", f"/{job}/out@primary")["status"] == "ACTIVE"
    assert atlas.there(TASK, f"{dag_id}.elsewhere@prod")["status"] == "ACTIVE"
    # A DAG that cannot be imported is stale to Airflow.
    with closing(sqlite3.connect(airflow.home / "airflow.db")) as database, database:
        database.execute("UPDATE dag SET is_stale = 1, has_import_errors = 1")
    assert spark_lineage(*prune).stdout == f"Every task of {job} in Atlas has a DAG.\n"
    assert atlas.status(guids[0]) == "ACTIVE"


def test_prune_goes_on_after_a_time_out_and_reports_as_it_goes(
    atlas: Atlas, sender: Sender, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{job}{number}" for number in range(2)]
    send(sender(), *(event(name, "START", namespace=job) for name in names))
    guids = [atlas.there(TASK, f"{name}@{job}")["guid"] for name in names]
    delete, failed = AtlasRest.delete_all, []

    def slow(self: AtlasRest, some: Sequence[str]) -> None:
        if not failed:
            failed.extend(some)
            raise Later("no answer: timed out")
        delete(self, some)

    monkeypatch.setattr(AtlasRest, "delete_all", slow)
    session = sender()._channel._session  # type: ignore[union-attr]
    done = prune(AtlasRest(session, atlas.url), lambda _, task_id: not task_id, job, is_dry_run=False)
    line, is_done = next(done)
    assert (line.partition(":")[0].rpartition(" ")[0], is_done) == ("not deleted", False)
    assert [is_done for _, is_done in done] == [True]
    assert sorted(map(atlas.status, guids)) == ["ACTIVE", "DELETED"]
    assert atlas.status(failed[0]) == "ACTIVE"


@pytest.mark.parametrize(
    ("status", "body"), [(302, b""), (200, b"{}"), (204, b""), (200, b'{"status": "ok"}'), (200, b"<html>")]
)
def test_an_answer_of_somebody_else_is_none(sender: Sender, job: str, status: int, body: bytes) -> None:
    class Gateway(Handler):
        def do_GET(self) -> None:
            self.answer(body, status)

        do_POST = do_PUT = do_DELETE = do_GET

    with serving(Gateway) as url:
        one = sender(Atlas(url, ("a", "b")))
        for each in (event(job, "START"), event(job, "COMPLETE", outputs=[dataset("/x")])):
            with pytest.raises(Later):
                send(one, each)
        assert not one._stamp.exists()


def test_types_are_made_by_a_command(spark_lineage: Command) -> None:
    done = spark_lineage("atlas", "types", "--conn-id", "atlas")
    assert (done.returncode, done.stdout) == (0, "The types are there.\n"), done.stderr
    done = spark_lineage("atlas", "types", "--conn-id", "nothing")
    assert done.returncode == 2
    assert "the connection 'nothing' cannot be read" in done.stderr


def test_the_doctor_asks_atlas(spark_lineage: Command) -> None:
    done = spark_lineage("doctor", "--conn-id", "atlas", "--json")
    found = [each["text"] for each in json.loads(done.stdout)["findings"] if "connection atlas" in each["text"]]
    assert found == ["the connection atlas: Atlas 2.1.0 is reached"]
