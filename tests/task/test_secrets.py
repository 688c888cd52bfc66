"""Secrets stay where they were, whatever becomes of the task."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from launches import EVENTS_FILE, location

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
USERS_TRANSPORT = (
    "spark.openlineage.transport.type http\n"
    "spark.openlineage.transport.url http://marquez:5000\n"
    "spark.openlineage.transport.auth.type api_key\n"
    "spark.openlineage.transport.auth.apiKey hunter2-key\n"
)


@pytest.mark.parametrize(
    ("exit_code", "how"), [(0, 0), (1, 0), (0, signal.SIGUSR1), (0, signal.SIGUSR2)], ids=["0", "1", "kill", "timeout"]
)
def test_the_secret_of_the_users_transport_stays_in_a_private_file(bench: Any, exit_code: int, how: int) -> None:
    bench.defaults = USERS_TRANSPORT
    outcome = bench.run(lineage=[EVENTS], exit_code=exit_code, signal_parent=how)
    told = outcome.command
    assert "hunter2" not in " ".join(told["argv"])
    assert told["conf"]["spark.openlineage.transport.type"] == "composite"
    assert told["conf"]["spark.openlineage.transport.transports.user.url"] == "http://marquez:5000"
    file = Path(told["properties"]["path"])
    assert file.parent == location(outcome).parent
    assert told["properties"]["mode"] == 0o600
    assert told["properties"]["text"].startswith(USERS_TRANSPORT)
    assert "hunter2\\u002dkey" in told["properties"]["text"].removeprefix(USERS_TRANSPORT)
    assert not file.exists(), "the private file was left behind"
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert "hunter2" not in outcome.printed
    assert "hunter2" not in json.dumps([outcome.last, outcome.pushed])


def test_a_properties_file_of_the_users_own_is_copied_and_not_touched(bench: Any) -> None:
    file = bench.file("mine.conf", USERS_TRANSPORT.encode())
    outcome = bench.run(lineage=[EVENTS], properties_file=str(file))
    told = outcome.command["properties"]
    assert outcome.command["argv"].count("--properties-file") == 1
    assert told["path"] != str(file)
    assert (told["mode"], told["text"].startswith(USERS_TRANSPORT)) == (0o600, True)
    assert not Path(told["path"]).exists()
    assert file.read_text() == USERS_TRANSPORT
    assert "hunter2" not in outcome.printed


def test_without_a_secret_there_is_no_private_file(bench: Any) -> None:
    bench.defaults = "spark.ui.enabled false\n"
    assert "properties" not in bench.run().command


@pytest.mark.parametrize("exit_code", [0, 1])
def test_no_secret_gets_out(bench: Any, laboratory: Any, exit_code: int) -> None:
    bench.defaults = USERS_TRANSPORT + "spark.hadoop.fs.s3a.secret.key hunter2-file\n"
    bench.connection["extra"] = {"my_password": "hunter2-extra", "lineage_tags": "ns"}
    event = json.loads(EVENTS.read_text().splitlines()[0])
    event["inputs"] = []
    event["outputs"] = [{"namespace": "s3://AKIA:hunter2@bucket", "name": "t?password=hunter2", "facets": {}}]
    event["run"]["runId"] = "01990000-0000-7000-8000-000000000001"
    event["eventType"] = "COMPLETE"
    outcome = bench.run(
        lineage_dir=None,
        lineage=[EVENTS, bench.file("more", json.dumps(event).encode() + b"\npassword=hunter2 is no JSON\n")],
        conf={
            "spark.hadoop.fs.s3a.access.key": "hunter2-access",
            "spark.my.apiKey": "hunter2-api",
            "spark.jdbc": "jdbc:postgresql://me:hunter2-jdbc@db/shop",
            "spark.hadoop.fs.azure.account.auth.type": "OAuth",
        },
        application_args=["--password", "hunter2-argument", "token=hunter2-token", "https://me:hunter2-url@host/x"],
        env_vars={"DB_PASSWORD": "hunter2-env"},
        repositories="https://me:hunter2-repository@repo.example/maven",
        log=[
            "24/01/31 INFO Main: password=hunter2-log and more",
            "Authorization: Bearer hunter2hunter2hunter2",
            "jdbc:postgresql://me:hunter2-log@db/shop",
            'Exception in thread "main" java.lang.IllegalStateException: apiKey=hunter2-tail',
        ],
        exit_code=exit_code,
        store={},
    )
    assert "hunter2-argument" in outcome.command["argv"], "the job itself must get them"
    assert "hunter2-env" in outcome.command["env"].values()
    assert "24/01/31 INFO Main: password=" in outcome.printed
    assert "db/shop" in outcome.printed
    if exit_code:
        assert "IllegalStateException" in outcome.error
    assert outcome.lineage["outputs"]
    kept = map(json.dumps, (outcome.executions, outcome.store, outcome.pushed))
    for text in (outcome.printed, *kept, *outcome.store_log):
        assert "hunter2" not in text
    assert location(outcome).is_relative_to(laboratory.home)
    for file in laboratory.home.rglob("*"):
        # What the listener wrote is the user's own.
        if file.is_file() and file.name != EVENTS_FILE:
            assert b"hunter2" not in file.read_bytes(), file


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"lineage_dir": "s3://AKIA:hunter2@bucket/lineage"},
        {"openlineage_jar": "http://me:hunter2@127.0.0.1:1/openlineage-spark.jar?token=hunter2"},
        {"openlineage_jar": "what password=hunter2"},
        {"lineage_tags": {"password=hunter2;": "x"}},
        {"retention_days": "password=hunter2"},
    ],
)
def test_no_secret_of_a_setting_gets_out_with_the_trouble_about_it(
    bench: Any, arguments: dict[str, Any], *, required: bool
) -> None:
    outcome = bench.run(lineage_required=required, **arguments)
    assert (outcome.error is not None) is required
    assert "hunter2" not in json.dumps([outcome.executions, outcome.pushed])
    assert "hunter2" not in outcome.printed
