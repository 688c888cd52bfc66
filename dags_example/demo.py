"""``make demo``: run the example DAG in an Airflow made for it, and show the lineage that came out.

The Airflow home (SQLite, logs, lineage files) stays in ``.demo``, and every OpenLineage event that Airflow sent, one a
line in ``events.ndjson``. The lake is ``/tmp/d``, for Marquez cuts names after 15 characters: there ``/tmp/d/bronze/o``
and ``/tmp/d/bronze/c`` still differ. The next run replaces it. With ``MARQUEZ_URL`` the same events go to that
Marquez as well, with ``ATLAS_URL`` (``http://user:password@host:port``) the task to that Apache Atlas. Spark keeps its
event log in ``.demo/event-logs``, as many platforms have it do; with ``EVIDENCE=event_log``, or without the
listener's jar, this log is the only source.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
DEMO = HERE.parent / ".demo"
EVENTS = DEMO / "events.ndjson"
LOG = DEMO / "airflow.log"
EVENT_LOGS = DEMO / "event-logs"
PICTURE = DEMO / "lineage.html"
NAMESPACE = "demo"
# What makes a directory a lake of the demo, which the next run may remove.
MARK = ".spark-lineage-demo"
DAG_ID = "orders_medallion"
JOB = f"{DAG_ID}.build_gold"
TAIL_LINES = 40
WIDTH = 120  # of what is shown, where there is no terminal
MARQUEZ_UI_PORT = 3000  # by convention; the API has 5000


def main() -> int:
    """Run the demo; gives the exit code: 0 when the DAG succeeded and its lineage came."""
    marquez, atlas = (os.environ.get(name, "").rstrip("/") for name in ("MARQUEZ_URL", "ATLAS_URL"))
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir()
    env = _environment(marquez, atlas, _lake())

    _run(env, "airflow", "db", "migrate", doing="Making an Airflow in .demo (SQLite)")
    _run(env, "airflow", "dags", "test", DAG_ID, doing=f"Running the DAG {DAG_ID} on Spark local[2]")

    lineage_files = sorted((DEMO / "airflow" / "spark_lineage").rglob("openlineage-events.ndjson"))
    if not EVENTS.exists():
        _fail("The DAG succeeded, but no lineage came")
    print(flush=True)
    sources = [*map(str, lineage_files), "--event-log", str(EVENT_LOGS)]
    show = ["spark-lineage", "show", "--exit-code", "0", *sources]
    subprocess.run(show, env=env, check=True)
    subprocess.run([*show, "--html", str(PICTURE)], env=env, check=True, stderr=subprocess.DEVNULL)
    print(f"\nSpark events: {sum(map(_count_lines, lineage_files))}")
    if marquez:
        server = urlsplit(marquez)
        print(f"Marquez: {server.scheme}://{server.hostname}:{MARQUEZ_UI_PORT}/lineage/job/{NAMESPACE}/{JOB}")
        print(f"Marquez API: {marquez}/api/v1/namespaces/{NAMESPACE}/jobs/{JOB}")
    if atlas:
        found = "type=spark_lineage_task&query=build_gold&searchType=basic"
        print(f"Atlas: {_without_login(atlas)}/#!/search/searchResult?{found}")
    if "wait in the outbox" in LOG.read_text(errors="replace"):
        print(f"Not every event was taken: see 'wait in the outbox' in {LOG}", file=sys.stderr)
    print(f"events: {EVENTS}")
    print(f"picture: {PICTURE}")
    return 0


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _lake() -> Path:
    """Make an empty directory with a short path, which only its owner can use: ``/tmp/d``, or the next that is free."""
    for number in range(1000):
        lake = Path(tempfile.gettempdir()) / f"d{number or ''}"
        is_own = not lake.is_symlink() and lake.is_dir() and lake.stat().st_uid == os.getuid()
        if is_own and (lake / MARK).exists():
            shutil.rmtree(lake)
        try:
            lake.mkdir(mode=0o700)
        except FileExistsError:
            continue
        (lake / MARK).touch()
        shutil.copytree(HERE / "data", lake / "data")
        return lake
    raise SystemExit(f"No directory {tempfile.gettempdir()}/d, …/d1 and so on is free for the lake")


def _configuration() -> str:
    """Return the directory of a configuration in which Spark keeps its event logs."""
    EVENT_LOGS.mkdir()
    directory = DEMO / "conf"
    directory.mkdir()
    lines = ("spark.eventLog.enabled true", f"spark.eventLog.dir {EVENT_LOGS.as_uri()}")
    (directory / "spark-defaults.conf").write_text("\n".join(lines))
    return str(directory)


def _environment(marquez: str, atlas: str, lake: Path) -> dict[str, str]:
    transports: dict[str, object] = {"file": {"type": "file", "log_file_path": str(EVENTS), "append": True}}
    if marquez:
        transports["marquez"] = {"type": "http", "url": marquez, "backend": "marquez"}
    lineage = {"conn_type": "openlineage", "extra": {"kind": "composite", "transports": transports}}
    transport = {"type": "spark_lineage.deliver.connection_transport.ConnectionTransport", "conn_id": "lineage"}
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE"))}
    inherited.pop("SPARK_HOME", None)  # the Spark of this environment, not another one
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if atlas:
        login = urlsplit(atlas)
        inherited["AIRFLOW_CONN_ATLAS"] = json.dumps(
            {"conn_type": "atlas", "host": _without_login(atlas), "login": login.username, "password": login.password}
        )
        inherited["AIRFLOW__SPARK_LINEAGE__LINEAGE_CONN_ID"] = "atlas"
    return inherited | {
        "PATH": path,
        "PYSPARK_PYTHON": sys.executable,
        "COLUMNS": str(shutil.get_terminal_size(fallback=(WIDTH, 24)).columns),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": _configuration(),
        "SPARK_LINEAGE_EXAMPLE_LAKE": str(lake),
        "SPARK_LINEAGE_EXAMPLE_DATA": str(lake / "data"),
        "AIRFLOW_HOME": str(DEMO / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(HERE),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__SPARK_LINEAGE__EVIDENCE": os.environ.get("EVIDENCE", "both"),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": NAMESPACE,
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW_CONN_LINEAGE": json.dumps(lineage),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
    }


def _run(env: dict[str, str], *command: str, doing: str) -> None:
    """Run a command with its output in the log; ends the demo with the log's tail when it fails."""
    print(f"{doing} … ", end="", flush=True)
    started = time.monotonic()
    with LOG.open("ab") as log:
        done = subprocess.run(command, env=env, cwd=DEMO, stdout=log, stderr=subprocess.STDOUT, check=False)
    print(f"{time.monotonic() - started:.0f} s", flush=True)
    if done.returncode:
        _fail(f"`{' '.join(command)}` failed with exit code {done.returncode}")


def _fail(what: str) -> None:
    print(f"\n{what}. The end of {LOG}:\n", file=sys.stderr)
    lines = [line for line in LOG.read_text(errors="replace").splitlines() if " INFO " not in line]  # Spark's chatter
    sys.stderr.writelines(f"  {line}\n" for line in lines[-TAIL_LINES:])
    raise SystemExit(1)


def _count_lines(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.strip())


if __name__ == "__main__":
    sys.exit(main())
