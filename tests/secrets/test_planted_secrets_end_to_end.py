"""Thirty secrets in one DAG run on a real Airflow and a real Spark: no file that is left holds any of them."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, EVENTS_FILE, RUN_EVENTS_FILE, TRANSITIONS_FILE

PROGRAM = Path(__file__).parent / "programs" / "tells_all.py"
MODES = ("succeeds", "fails_in_python", "fails_in_the_jvm")

# What the driver prints, each in its own words.
AWS = "AKIA" + "QQ1PLANTED2QQ3ID"
PRINTED = {
    "basic": "Authorization: Basic cGxhbnRlZDpiYXNpY3BsYW50ZWQ=",
    "bearer": "sent with Bearer planted.bearer-51",
    "jwt": "got eyJhbGciOiJIUzI1NiJ9." + "eyJwbGFudGVkIjoxfQ.cGxhbnRlZC1zaWduYXR1cmU.",
    "aws": f"{AWS}:planted/AWS+key" + "0123456789abcdefghijklmno",
    "pem": "-----BEGIN PRIVATE KEY-----|cGxhbnRlZFBFTXBsYW50ZWRQRU0=|-----END PRIVATE KEY-----",
    "sas": "abfss://c@acc.dfs.core.windows.net/t?sv=2024&sig=planted-sas-52%3D&se=1",
    "presigned": "https://b.s3.amazonaws.com/k?X-Amz-Credential=planted-cred-53&X-Amz-Signature=planted-sign-54",
    "jdbc": "jdbc:postgresql://h/d?user=me&password=planted-jdbc-55&ssl=true",
    "map": "Map(user -> me, password -> planted-map-56)",
    "kafka": 'sasl.jaas.config=org.x.PlainLoginModule required username="me" password="planted-jaas-57";',
    "pattern": "the customer ACME-31415926 has paid",
    "group": "customer no. 2718281828 is late",
    "registered": "Zx9!planted-conn",
}
# Of these the program turns the letters around: they are in no argument as they are.
TURNED = ("description", "comment", "sql", "path", "jvm", "python")
SECRETS = {
    # Where it is, and what must be found nowhere.
    "conf": "planted-conf-01",
    "conf printed without its key": "Pl4nt3d-v4lu3-02",
    "Java option": "planted-java-03",
    "properties file": "Pl4nt3d-f1l3-04",
    "environment of the hook": "Pl4nt3d-3nv-05",
    "argument": "planted-argument-06",
    "name of the application": "planted-name-07",
    "tag of the lineage": "planted-tag-08",
    "tag of the DAG": "planted-tag-09",
    "owner": "planted-owner-10",
    "documentation": "planted-doc-11",
    "description of the DAG": "planted-text-12",
    "password of the Spark connection": "Zx9!planted-conn",
    "extra of the Spark connection": "planted-extra-13",
    "key of the OpenLineage connection": "planted-key-14",
    "header of the OpenLineage connection": "planted-header-15",
    "inlet": "planted-inlet-16",
    "Basic": "cGxhbnRlZDpiYXNpY3BsYW50ZWQ",
    "Bearer": "planted.bearer-51",
    "JSON web token": "cGxhbnRlZC1zaWduYXR1cmU",
    "AWS id": AWS,
    "AWS key": "0123456789abcdefghijklmno",
    "PEM": "cGxhbnRlZFBFTXBsYW50ZWRQRU0",
    "SAS token": "planted-sas-52",
    "presigned credential": "planted-cred-53",
    "presigned signature": "planted-sign-54",
    "JDBC URL": "planted-jdbc-55",
    "map of Spark": "planted-map-56",
    "Kafka": "planted-jaas-57",
    "user's pattern": "ACME-31415926",
    "group of a user's pattern": "2718281828",
    **{f"{name} of the program": f"planted-{name}-Q9" for name in TURNED if name != "path"},
    "path of an output": "ACME-27182818",
}

DAG = """
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
from airflow.sdk import Asset
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

with DAG(
    "planted",
    start_date=datetime(2024, 1, 1),
    schedule=None,
    tags=["token={tag of the DAG}"],
    description="Runs with password={description of the DAG}",
    doc_md="Take api_key: {documentation}",
    default_args={{"owner": "https://me:{owner}@wiki"}},
):
    for mode in {modes!r}:
        LineageSparkSubmitOperator(
            task_id=mode,
            application={program!r},
            name="app token={name of the application}",
            application_args=[mode, *{paths!r}, "--db-password", "{argument}", *{arguments!r}],
            conf={{
                "spark.ui.enabled": "false",
                "spark.hadoop.fs.s3a.secret.key": "{conf}",
                "spark.my.password": "{conf printed without its key}",
                "spark.driver.extraJavaOptions": "-Dmy.password={Java option}",
            }},
            properties_file={properties!r},
            env_vars={{"DB_PASSWORD": "{environment of the hook}"}},
            lineage_tags={{"api_key": "{tag of the lineage}"}},
            inlets=[Asset("s3://bucket/orders?password={inlet}")],
            lineage_listeners=["spark_lineage.listeners.ndjson_listener.NdjsonListener"],
            {more}
        )
"""

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@dataclass
class Ran:
    """What is left of the run: the home of Airflow, what was printed, and the user's own files."""

    home: Path
    printed: str
    airflow: Any


@pytest.fixture(scope="module")
def ran(airflow: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The DAG has run once; one backend is a file, the other is not there."""
    home: Path = airflow.home
    own = tmp_path_factory.mktemp("own")
    (own / "orders.csv").write_text((home / "orders.csv").read_text())
    (own / "spark.properties").write_text(f"spark.of.the.file.secret  {SECRETS['properties file']}\n")
    turned = {name: SECRETS.get(f"{name} of the program", SECRETS["path of an output"])[::-1] for name in TURNED}
    source = DAG.format(
        modes=MODES,
        program=str(PROGRAM),
        paths=[str(own / "orders.csv"), str(own / "out")],
        arguments=[f"planted_{name}={text}" for name, text in (PRINTED | turned).items()],
        properties=str(own / "spark.properties"),
        more='lineage_conn_id="backend",',
        **SECRETS,
    )
    (home / "dags" / "planted.py").write_text(source)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    airflow.env |= {
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "spark_lineage.deliver.connection_transport.ConnectionTransport", "conn_id": "events"}
        ),
        "AIRFLOW_CONN_EVENTS": json.dumps(
            {"conn_type": "openlineage", "host": str(home / "events.ndjson"), "extra": {"kind": "file"}}
        ),
        # Airflow's own DEBUG tells every secret that it registers.
        "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "spark_lineage=DEBUG",
        "AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS": "ACME-[0-9]{8}\ncustomer no\\. (\\d+)",
        "AIRFLOW__SPARK_LINEAGE__NDJSON_LISTENER_PATH": str(home / "listener.ndjson"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
            {
                "conn_type": "spark",
                "host": "local[2]",
                "password": SECRETS["password of the Spark connection"],
                "extra": {"my_secret": SECRETS["extra of the Spark connection"]},
            }
        ),
        "AIRFLOW_CONN_BACKEND": json.dumps(
            {
                "conn_type": "openlineage",
                "host": f"http://127.0.0.1:{port}",
                "password": SECRETS["key of the OpenLineage connection"],
                "extra": {"headers": {"X-Api-Token": SECRETS["header of the OpenLineage connection"]}},
            }
        ),
    }
    printed = airflow.command("dags", "test", "planted")
    (home / "planted.log").write_text(printed)
    return Ran(home, printed, airflow)


def test_the_run_told_what_there_was_to_tell(ran: Ran) -> None:
    for mode in MODES:
        events = ran.airflow.events_of(f"planted.{mode}")
        last = events[-1]
        assert last["eventType"] == ("COMPLETE" if mode == "succeeds" else "FAIL"), ran.printed[-5000:]
        assert [each["name"].rpartition("/")[2] for each in last["outputs"]] == [f"{mode}-***"]
    for word in ("the customer *** has paid", "customer no. *** is late", "in the environment is ***", "Basic ***"):
        assert word in ran.printed
    assert "nobody tells what *** is" in ran.printed


def holds(path: Path) -> dict[str, str]:
    """Return the secrets that a file holds, each with what stands around it."""
    content = path.read_bytes()
    found = {name: content.find(secret.encode()) for name, secret in SECRETS.items()}
    return {name: repr(content[max(0, at - 80) : at + 60]) for name, at in found.items() if at >= 0}


def test_no_file_that_is_left_holds_a_secret(ran: Ran) -> None:
    assert len(SECRETS) > 30
    # The user's own file, what Python makes of it, Airflow's database and its caches of jars are not ours.
    files = [each for each in ran.home.rglob("*") if each.is_file() and not {"jars", "__pycache__"} & {*each.parts}]
    files = [each for each in files if each.name != "planted.py" and not each.name.startswith("airflow.db")]
    # What the driver itself writes is as Spark tells it: masked when it is read, until then nobody else's to read.
    of_the_driver = {each for each in files if each.name == EVENTS_FILE or EVENT_LOG_DIRECTORY in each.parts}
    ours = {"events.ndjson", "listener.ndjson", "planted.log", "launch.json", RUN_EVENTS_FILE, TRANSITIONS_FILE}
    assert ours <= {each.name for each in files}
    # The events wait there for a backend that never came, and can be read.
    assert any(b"planted.succeeds" in each.read_bytes() for each in files if "spark_lineage_outbox" in each.parts)
    leaks = {str(each.relative_to(ran.home)): found for each in files if (found := holds(each))}
    assert not {file: found for file, found in leaks.items() if ran.home / file not in of_the_driver}
    assert of_the_driver
    assert not [file for file in of_the_driver if file.parent.stat().st_mode & 0o077]
