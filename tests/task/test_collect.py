"""Tasks in deploy mode cluster whose event log is on no disk of this machine: they share nothing, and need no jar."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster_manager import APPLICATION_ID, Cluster
from http_server import Handler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = Path(__file__).parents[1] / "fixtures" / "event_logs" / "stream"
NOBODY = "http://127.0.0.1:1"
KEY_OF_STORE = "hunter2-of-the-store"


def written(bench: Any, name: str, *, lines: int | None = None) -> Path:
    """Write the log of the task's application into a directory that stands for another file system."""
    directory: Path = bench.root / "store"
    directory.mkdir()
    content = LOG.read_bytes().replace(b"local-1795291862028", APPLICATION_ID.encode()).splitlines(keepends=True)
    (directory / name).write_bytes(b"".join(content[:lines]))
    return directory


def run(bench: Any, url: str, extra: dict[str, Any] | None = None, **arguments: Any) -> Any:
    bench.env |= {
        "XDG_CACHE_HOME": str(bench.root / "no-jars"),
        "DEFAULT_ARTIFACT_REPOSITORY": NOBODY,
    }
    arguments = {"openlineage_jar": None, "lineage_dir": None, "lineage_required": True, **arguments}
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": url}
    with Cluster(["SUCCEEDED"]).serving() as cluster:
        addresses = {"yarn_resourcemanager_webapp_address": f"http://127.0.0.1:{cluster.port}", **(extra or {})}
        bench.connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster", **addresses}}
        return bench.run(
            log=[f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"],
            yarn_track_via_rm_api=True,
            conf=conf,
            **arguments,
        )


@contextmanager
def history(files: dict[str, bytes], *, is_over: bool = True) -> Iterator[str]:
    """A History Server that has the log of the task's application."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)

    class Files(Handler):
        def do_GET(self) -> None:
            known = {"id": APPLICATION_ID, "attempts": [{"attemptId": "1", "completed": is_over}]}
            body = stream.getvalue() if self.path.endswith("/logs") else json.dumps(known).encode()
            is_asked = self.path.removesuffix("/logs").endswith(f"/applications/{APPLICATION_ID}")
            self.answer(body, 200 if is_asked else 404)

    with serving(Files) as url:
        yield url


def collection(outcome: Any) -> dict[str, Any]:
    assert outcome.error is None, outcome.printed
    assert outcome.lineage["outputs"], outcome.printed
    facet: dict[str, Any] = outcome.lineage["run_facets"]["sparkLineage_collection"]
    return {key: facet[key] for key in ("evidence", "setAside", "collectedFrom")}


def test_the_log_is_read_where_it_lies(bench: Any) -> None:
    outcome = run(bench, written(bench, f"{APPLICATION_ID}_1").as_uri(), event_log_from="event_log")
    assert collection(outcome) == {"evidence": ["event_log"], "setAside": {}, "collectedFrom": ["event_log"]}
    assert "Lineage comes from Spark's event log" in outcome.printed
    assert "the event log is collected from where it lies (file:///" in outcome.printed
    assert "Cannot download the OpenLineage listener jar" not in outcome.printed, "nobody waits for the jar"
    assert outcome.command["conf"]["spark.sql.maxMetadataStringLength"] == "100000"


def test_line_of_a_log_that_is_no_event_is_counted(bench: Any) -> None:
    directory = written(bench, f"{APPLICATION_ID}_1")
    with (directory / f"{APPLICATION_ID}_1").open("a") as log:
        log.write("no event\n")
    outcome = run(bench, directory.as_uri(), event_log_from="event_log")
    assert collection(outcome)["setAside"] == {"not an event": 1}
    assert "errorMessage" not in outcome.lineage["run_facets"], "the job has succeeded"


def test_where_no_driver_of_the_file_system_is_there_it_is_the_history_server(bench: Any) -> None:
    content = LOG.read_bytes().replace(b"local-1795291862028", APPLICATION_ID.encode())
    with history({f"{APPLICATION_ID}_1": content}) as url:
        address = f"s3a://AKIA:{KEY_OF_STORE}@bucket/logs"
        outcome = run(bench, address, {"history_server_url": url}, lineage_dir=str(bench.lineage_dir))
    assert collection(outcome) == {"evidence": ["event_log"], "setAside": {}, "collectedFrom": ["history"]}
    (line,) = [line for line in outcome.printed.splitlines() if "the event log is collected from" in line]
    assert (
        f"the History Server ({url}) (event_log_from=auto: this machine sees no directory of it; Install s3fs" in line
    )
    assert KEY_OF_STORE not in outcome.printed
    assert KEY_OF_STORE not in json.dumps(outcome.lineage)
    kept = [path.read_text() for path in bench.root.rglob("launch.json")]
    assert "s3a://bucket/logs" in "".join(kept), "a retry and the recovery find it by that"
    assert KEY_OF_STORE not in "".join(kept)


def test_a_log_that_is_cut_off_is_said_to_be(bench: Any) -> None:
    directory = written(bench, f"{APPLICATION_ID}_1.inprogress", lines=-1)
    with history({f"{APPLICATION_ID}_1.inprogress": b""}, is_over=False) as url:
        outcome = run(
            bench,
            directory.as_uri(),
            {"history_server_url": url},
            event_log_from="event_log",
            lineage_timeout=3,
        )
    assert collection(outcome)["setAside"] == {"event log without its end": 1}
    assert "is without the application's end" in outcome.printed


def test_what_can_be_read_from_nowhere_is_worth_the_jar(bench: Any) -> None:
    outcome = run(bench, "s3a://bucket/logs", lineage_required=False)
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without lineage" in line]
    assert "Cannot download the OpenLineage listener jar" in line
    assert "Install s3fs" in line
    assert "the connection names no history_server_url" in line


@pytest.mark.parametrize("collect", ["directory", "history"])
def test_only_what_is_chosen_is_tried(bench: Any, collect: str) -> None:
    outcome = run(bench, "memory://logs", event_log_from=collect, evidence="event_log", lineage_required=False)
    why = {"directory": "event_log_from is directory", "history": "the connection names no history_server_url"}
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without lineage" in line]
    assert why[collect] in line
