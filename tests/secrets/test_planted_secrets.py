"""Secrets in more than thirty places of an event and of what is logged: none of them is left."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing, append_event
from spark_lineage.deliver.stored_event import restore
from spark_lineage.launch.directory import TRANSITIONS_FILE
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import StatusReport
from spark_lineage.secrets import redaction as own_secrets
from spark_lineage.secrets.redaction import (
    redact,
    redact_command,
    redact_error,
    redact_event,
    redact_value,
    remember_values,
)
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.status_monitor import StatusMonitor

masker = pytest.importorskip("airflow.sdk._shared.secrets_masker")

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
FACET = {"_producer": "https://github.com/me/x", "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/X.json"}
AWS_ID, AWS_KEY = "AKIA" + "QQ1PLANTED2QQ3ID", "planted/AWS+key" + "0123456789abcdefghijklmno"
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJwbGFudGVkIjoxfQ.cGxhbnRlZC1zaWduYXR1cmU"
PEM = "-----BEGIN PRIVATE KEY-----\nplantedPEMplantedPEM\n-----END PRIVATE KEY-----"
REGISTERED, OF_THE_PATTERN, REMEMBERED = "Zx9!planted-registered", "ACME-31415926", "r3m3mb3r3d-Pl4nt3d"


def secret(place: str) -> str:
    """Return a value that is found nowhere else."""
    return f"planted-{place}-2718"


# Where it stands in the event, the text there, and the part of it that must be gone.
RUN: list[tuple[str, Any, str]] = [
    ("conf", {"spark.hadoop.fs.s3a.secret.key": secret("conf")}, secret("conf")),
    ("conf of the driver's transport", {"spark.openlineage.transport.auth.apiKey": secret("key")}, secret("key")),
    ("properties file", {"text": f"spark.ssl.keyPassword   {secret('file')}\nspark.x y"}, secret("file")),
    ("java options", {"spark.driver.extraJavaOptions": f"-Dx.password={secret('java')} -Dy=1"}, secret("java")),
    ("command", {"command": ["spark-submit", "--conf", f"spark.x.token={secret('command')} b"]}, secret("command")),
    ("argument", {"args": ["--db-password", secret("argument")]}, secret("argument")),
    ("environment facet", {"list": [{"name": "DB_PASSWORD", "value": secret("env")}]}, secret("env")),
    ("master", {"master": f"spark://me:{secret('master')}@host:7077"}, secret("master")),
    ("JDBC parameter", {"url": f"jdbc:postgresql://h/d?user=me&password={secret('jdbc')}"}, secret("jdbc")),
    ("JDBC login", {"url": f"jdbc:oracle:thin:me/{secret('oracle')}@//h:1521/x"}, secret("oracle")),
    ("Python exception", {"message": f"ValueError: no login with password='{secret('python')}'"}, secret("python")),
    ("JVM exception", {"stackTrace": f"java.sql.SQLException: {{password={secret('jvm')}}}\n\tat x.Y"}, secret("jvm")),
    ("driver's log line", {"line": f"INFO Conf: spark.my.secret -> {secret('line')}"}, secret("line")),
    ("connection's password", {"conn": {"password": secret("conn")}}, secret("conn")),
    ("connection's extra", {"extra": {"client_secret": secret("extra")}}, secret("extra")),
    ("connection as URI", {"uri": f"postgres://me:{secret('uri')}@h/d"}, secret("uri")),
    ("header", {"headers": {"Authorization": f"Token {secret('header')}"}}, secret("header")),
    ("Kafka", {"sasl.jaas.config": f'x.PlainLoginModule required password="{secret("kafka")}";'}, secret("kafka")),
    ("Kafka password", {"properties": {"sasl.password": secret("sasl")}}, secret("sasl")),
    ("Basic", {"text": "sent Basic cGxhbnRlZDpiYXNpYzE="}, "cGxhbnRlZDpiYXNpYzE"),
    ("Bearer", {"text": f"sent Bearer {secret('bearer')}"}, secret("bearer")),
    ("JSON web token", {"text": f"got {JWT}."}, "cGxhbnRlZC1zaWduYXR1cmU"),
    ("AWS key", {"text": f"{AWS_ID}:{AWS_KEY}"}, "0123456789abcdefghijklmno"),
    ("PEM block", {"text": PEM}, "plantedPEM"),
    ("a number", {"password": 271828}, "271828"),
    ("deep in JSON", {"a": [{"b": {"token": [secret("deep")]}}]}, secret("deep")),
    ("key of a map", {"map": {f"https://me:{secret('map')}@host": 1}}, secret("map")),
    ("SQL", {"query": f"CREATE TABLE t OPTIONS (dbtable 'x', password '{secret('sql')}')"}, secret("sql")),
    ("registered with Airflow", {"text": f"nothing tells what {REGISTERED} is"}, REGISTERED),
    ("user's pattern", {"text": f"the customer {OF_THE_PATTERN} has paid"}, OF_THE_PATTERN),
    ("value of a secret key, elsewhere", {"text": f"login failed for me/{REMEMBERED}"}, REMEMBERED),
]  # fmt: skip
JOB: list[tuple[str, Any, str]] = [
    ("documentation", {"description": f"Runs with token: {secret('doc')}"}, secret("doc")),
    ("owner", {"owners": [{"name": f"team https://me:{secret('owner')}@wiki"}]}, secret("owner")),
    ("tag", {"tags": [{"key": "api_key", "value": secret("tag"), "source": "USER"}]}, secret("tag")),
    ("source location", {"url": f"https://{secret('git')}@github.com/me/x"}, secret("git")),
]
SAS = f"abfss://c@acc.dfs.core.windows.net/t?sv=2024&sig={secret('sas')}%3D&se=1"
DATASETS: list[tuple[str, str, str, str]] = [
    ("login in the namespace", f"s3a://{AWS_ID}:{secret('bucket')}@bucket", "t", secret("bucket")),
    ("SAS token", "abfss://c@acc.dfs.core.windows.net", SAS, secret("sas")),
    (
        "presigned URL",
        "https://b.s3.amazonaws.com",
        f"k?X-Amz-Credential={secret('credential')}&X-Amz-Signature={secret('presigned')}",
        secret("presigned"),
    ),
    ("JDBC table", f"jdbc:sqlserver://h;password={secret('table')};a=b", "db.t", secret("table")),
    ("AWS key in a path", "file", f"/data/{AWS_ID}/t", AWS_ID),
    ("registered", "file", f"/data/{REGISTERED}/t", REGISTERED),
    ("pattern", "file", f"/data/{OF_THE_PATTERN}/t", OF_THE_PATTERN),
]
DATASET_FACETS: list[tuple[str, dict[str, Any], str]] = [
    ("symlink", {"identifiers": [{"namespace": f"hive://me:{secret('link')}@h", "name": "d.t"}]}, secret("link")),
    ("comment", {"fields": [{"name": "c", "description": f"password={secret('comment')}"}]}, secret("comment")),
    ("column", {"fields": [{"name": OF_THE_PATTERN, "type": "int"}]}, OF_THE_PATTERN),
    ("catalog", {"metadataUri": f"thrift://me:{secret('metastore')}@h:9083"}, secret("metastore")),
    ("property", {"properties": {"s3.secret-key": secret("property")}}, secret("property")),
]  # fmt: skip
ALL = [
    *(("run", *each) for each in RUN),
    *(("job", *each) for each in JOB),
    *(("dataset", name, {"namespace": namespace, "name": path}, gone) for name, namespace, path, gone in DATASETS),
    *(("facet of a dataset", *each) for each in DATASET_FACETS),
]


@pytest.fixture(autouse=True)
def known_to_their_owner() -> Iterator[None]:
    """What no shape tells."""
    masker.mask_secret(REGISTERED)
    own_secrets.use_patterns([r"ACME-[0-9]{8}"])
    remember_values({"spark.my.password": REMEMBERED})
    yield
    masker.reset_secrets_masker()
    own_secrets.use_patterns(())
    own_secrets._owner.remembered = frozenset()


def real_event() -> dict[str, Any]:
    lines = (FIXTURES / "a_414.ndjson").read_text().splitlines()
    return next(
        each
        for each in map(json.loads, lines)
        if each["eventType"] == "COMPLETE" and each["inputs"] and each["outputs"]
    )


def planted(place: str, what: dict[str, Any]) -> dict[str, Any]:
    """Return a real event with this in it."""
    event = real_event()
    output = event["outputs"][0]
    if place == "dataset":
        event["inputs"][0].update(what)
        output.update(what)
        output["facets"]["columnLineage"] = {**FACET, "fields": {"c": {"inputFields": [{**what, "field": "d"}]}}}
    else:
        facets = {"run": event["run"], "job": event["job"], "facet of a dataset": output}[place]["facets"]
        facets["planted_facet"] = {**FACET, **what}
    return event


@pytest.mark.parametrize(("place", "name", "what", "gone"), ALL, ids=[each[1] for each in ALL])
def test_a_planted_secret_leaves_no_event(place: str, name: str, what: dict[str, Any], gone: str) -> None:
    event = planted(place, what)
    assert gone in json.dumps(event, ensure_ascii=False)
    masked = redact_event(event)
    text = json.dumps(masked, ensure_ascii=False)
    assert gone not in text
    assert redact_event(masked) == masked
    restore(text.encode())


def test_all_of_them_at_once_leave_no_event_and_no_text() -> None:
    assert len(ALL) > 30
    everything = [planted(place, what) for place, _, what, _ in ALL]
    masked = json.dumps([redact_event(each) for each in everything], ensure_ascii=False)
    values = json.dumps(redact_value([what for place, _, what, _ in ALL if place != "dataset"]), ensure_ascii=False)
    for place, name, _, gone in ALL:
        assert gone not in masked, name
        # Names of columns are not known as such in other values.
        assert place == "dataset" or gone not in values, name
    assert "planted-" not in masked + values


def test_a_planted_secret_is_in_no_exception() -> None:
    error = RuntimeError(f"Cannot execute: spark-submit --password {secret('run')} {REMEMBERED}")
    error.__cause__ = OSError(5, f"token={secret('os')}", f"/data/{REGISTERED}")
    error.add_note(f"customer {OF_THE_PATTERN}")
    redact_error(error)
    assert [str(error), str(error.__cause__), *error.__notes__] == [
        "Cannot execute: spark-submit --password *** ***",
        "[Errno 5] token=***: '/data/***'",
        "customer ***",
    ]


def test_a_planted_secret_is_in_no_command() -> None:
    command = ["spark-submit", "--master", f"spark://me:{secret('m')}@h", "--conf", f"spark.x.secret={secret('c')} d",
               "--keytab", "/etc/my.keytab", "app.py", "--token", secret("t"), REGISTERED, OF_THE_PATTERN]  # fmt: skip
    assert redact_command(command) == [
        "spark-submit", "--master", "spark://***@h", "--conf", "spark.x.secret=***",
        "--keytab", "***", "app.py", "--token", "***", "***", "***",
    ]  # fmt: skip


def test_a_planted_secret_is_in_no_file_of_transitions(tmp_path: Path) -> None:
    sources, silent = Sources(Endpoints("local", "client", {}), Driver()), logging.getLogger(__name__)
    monitor = StatusMonitor(sources, tmp_path, interval_seconds=5, on_transition=lambda _: None, logger=silent)
    texts = [(each, gone) for _, what, gone in RUN for each in what.values() if isinstance(each, str)]
    for number, (text, gone) in enumerate(texts):
        # As values of their keys they would be known; here they are words in a text.
        known = text if gone not in redact(text) else f"password={gone}"
        now = datetime(2024, 1, 31, 12, number, tzinfo=UTC)
        said = StatusReport("DRIVER", f"driver-{number}", "FAILED", now, "master", detail=known, exception=known)
        monitor.report(said)
    monitor.flush(60)
    written = (tmp_path / TRANSITIONS_FILE).read_text()
    assert written.count("FAILED") == len(texts) > 10
    for _, gone in texts:
        assert gone not in written


def test_a_planted_secret_is_in_no_outbox_and_in_no_kept_event(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    launch = tmp_path / "launch"
    launch.mkdir()
    for place, _, what, _ in ALL:
        event = Outgoing.encode(restore(json.dumps(planted(place, what)).encode()))
        outbox.spool("marquez").put(event)
        append_event(launch, event.body)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    written = b"".join(file.read_bytes() for file in files)
    assert len(written) > 2 * len(ALL) * 1000
    for _, name, _, gone in ALL:
        assert gone.encode() not in written, name
