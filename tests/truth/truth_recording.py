"""Keeps what an application left as one small file, and gives it back: ``recorded/VERSION/JOB.zip``."""

from __future__ import annotations

import atexit
import json
import re
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import zstandard
from truth_file import VERSIONS
from truth_run import SNAPSHOTS_FILE, Application, kept_application

from spark_lineage.launch.directory import EVENTS_FILE

RECORDED = Path(__file__).parent / "recorded"
_REPOSITORY = Path(__file__).parents[2]
# Where recorded applications say that they ran.
_HOME = "/data/lab"
_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
# Nearly all of a log, by their whole names.
_UNREAD_EVENTS = (
    "SparkListenerTaskStart",
    "SparkListenerTaskGettingResult",
    "SparkListenerTaskEnd",
    "SparkListenerSpeculativeTaskSubmitted",
    "SparkListenerStageSubmitted",
    "SparkListenerStageCompleted",
    "SparkListenerStageExecutorMetrics",
    "SparkListenerExecutorAdded",
    "SparkListenerExecutorRemoved",
    "SparkListenerExecutorMetricsUpdate",
    "SparkListenerBlockManagerAdded",
    "SparkListenerBlockManagerRemoved",
    "SparkListenerBlockUpdated",
    "SparkListenerUnpersistRDD",
    f"{_SQL}SQLAdaptiveSQLMetricUpdates",
)
_UNREAD = tuple(f'{{"Event":"{event}"'.encode() for event in _UNREAD_EVENTS)
_ENVIRONMENT = b'{"Event":"SparkListenerEnvironmentUpdate"'
_READ_PROPERTIES = (
    "spark.sql.",
    "spark.openlineage.",
    "spark.app",
    "spark.hadoop.hive",
    "spark.submit.deployMode",
    "spark.master",
)


def recording(job: str, version: str) -> Path:
    """Where the recording of a job on a Spark release is, if it is there."""
    return RECORDED / version / f"{job}.zip"


def recordings() -> list[tuple[str, str]]:
    """Release and job of each recording."""
    return [(version, path.stem) for version in VERSIONS for path in sorted((RECORDED / version).glob("*.zip"))]


def record(application: Application, path: Path) -> None:
    """Keep the lineage file and the event log, without what is never read and without the paths of this machine."""
    here = re.compile("|".join(re.escape(str(path)) for path in (application.home, _REPOSITORY)).encode())
    files = {f"lineage/{EVENTS_FILE}": _text(application.home / "lineage" / EVENTS_FILE)}
    files |= {f"eventlog/{log.name}": _text(log) for log in (application.home / "eventlog").iterdir()}
    run = {"home": _HOME, "exit_code": application.exit_code, "seconds": application.seconds}
    files["run.json"] = json.dumps(run).encode()
    if snapshots := application.snapshots:
        files[SNAPSHOTS_FILE] = json.dumps(snapshots, sort_keys=True).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in files.items():
            # Without a time, so that the same content is the same file.
            archive.writestr(zipfile.ZipInfo(_plain(name)), here.sub(_HOME.encode(), content),
                             zipfile.ZIP_LZMA)  # fmt: skip


def recorded(job: str, version: str, home: Path) -> Application:
    """Return a recorded application, unpacked into ``home``."""
    with zipfile.ZipFile(recording(job, version)) as archive:
        archive.extractall(home)
    return kept_application(home)


def merged_recording(job: str, version: str, evidence: str = "all") -> tuple[Application, dict[str, Any]]:
    """Return a recorded application and its event; a process unpacks and merges each once."""
    return _unpacked(job, version), json.loads(_merged(job, version, evidence))


@cache
def _unpacked(job: str, version: str) -> Application:
    return recorded(job, version, Path(_temporary().name, version, job))


@cache
def _merged(job: str, version: str, evidence: str) -> str:
    return json.dumps(_unpacked(job, version).merged(evidence=evidence))


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    made = tempfile.TemporaryDirectory(prefix="truth-")
    atexit.register(made.cleanup)
    return made


def _text(path: Path) -> bytes:
    if not path.exists():
        # A driver that was killed at once.
        return b""
    content = path.read_bytes()
    if _plain(path.name) != path.name:
        content = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(content)
    return b"".join(_line(line) for line in content.splitlines(keepends=True) if not line.startswith(_UNREAD))


def _line(line: bytes) -> bytes:
    if not line.startswith(_ENVIRONMENT):
        return line
    told = json.loads(line)
    spark = {key: value for key, value in dict(told["Spark Properties"]).items() if key.startswith(_READ_PROPERTIES)}
    system = {"user.dir": dict(told["System Properties"])["user.dir"]}
    kept = {"Event": told["Event"], "Spark Properties": spark, "System Properties": system}
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


def _plain(name: str) -> str:
    return name.replace(".zstd", "")
