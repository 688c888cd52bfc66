"""A word is found in whatever a submission brings, and in nothing else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from spark_lineage.inject.task_injection import is_in_program

WORD = b"eventLog"


def says(application: Path, *others: object) -> bool:
    return is_in_program(WORD, str(application), map(str, others))


@pytest.mark.parametrize(
    ("imported", "file"),
    [
        ("import sessions", "sessions.py"),
        ("import os, sessions as s", "sessions.py"),
        ("def late():\n    from sessions.local import session", "sessions/local.py"),
        ("from sessions import anything", "sessions/deep/er.py"),
        ("import common", "sessions.py"),
        ("import os as o, sessions", "sessions.py"),
        ("try: import sessions\nexcept ImportError: pass", "sessions.py"),
        ("from package import load", "sessions.py"),
    ],
)
def test_modules_beside_the_program(tmp_path: Path, imported: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text('KEY = "spark.eventLog.dir"')
    (tmp_path / "common.py").write_text("import sessions\nimport common")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "load.py").write_text("from sessions import session")
    (tmp_path / "other_job.py").write_text('KEY = "spark.eventLog.dir"')
    job = tmp_path / "job.py"
    job.write_text(f"from . import x\n{imported}\n")
    assert says(job)
    job.write_text("import json, pyspark.sql\n")
    assert not says(job)
    assert says(f"file://{tmp_path}/other_job.py")


def test_arguments_and_the_files_that_they_name(tmp_path: Path) -> None:
    job, settings, data = tmp_path / "job.py", tmp_path / "settings.yaml", tmp_path / "data.csv"
    job.write_text("")
    settings.write_text("spark.eventLog.dir: /logs")
    data.write_bytes(b"eventLog" + bytes(5 * 1024 * 1024))
    assert says(job, "--conf", "spark.eventLog.dir=/logs")
    assert says(job, f"{settings}#settings.yaml")
    assert not says(job, data, tmp_path, "", "s3a://bucket/job.py", "\0", "x" * 5000)


def test_archives_but_for_spark_in_a_fat_jar(tmp_path: Path) -> None:
    jar = tmp_path / "job.jar"
    for name, is_found in (("org/apache/spark/SparkContext.class", False), ("com/example/Job.class", True)):
        with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, b"\xca\xfe\xba\xbe spark.eventLog.dir")
        assert says(jar) is is_found
