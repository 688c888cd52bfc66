"""Which programs are brought the declare module, beside whose files, and in what bytes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.inject.task_injection import CannotShipError, archive_bytes, ship_declare
from spark_lineage.launch.directory import DECLARE_ARCHIVE

ROOT = Path(__file__).parents[2]


IDENTITY = {
    "spark.openlineage.namespace": "ns",
    "spark.openlineage.appName": "app",
    "spark.openlineage.applicationRunId": "run",
}


def ship(
    directory: Path,
    *,
    application: str = "job.py",
    master: str = "local[2]",
    deploy_mode: str = "client",
    file: dict[str, str] | None = None,
    **arguments: Any,
) -> SubmitArguments:
    """Return what is submitted."""
    properties = {**(file or {}), **arguments.get("conf", {})}
    submitted = SubmitArguments(**{**arguments, "conf": {**IDENTITY, **arguments.get("conf", {})}})
    prepared = PreparedArguments(submitted, None, deploy_mode, properties)
    submitter = Submitter(master, "spark-submit", {}, None, [], lambda _: deploy_mode, application)
    return ship_declare(prepared, submitter, directory).arguments


@pytest.mark.parametrize(
    ("given", "submitted"),
    [
        ({}, DECLARE_ARCHIVE),
        ({"py_files": "/a.zip, s3a://b/c.egg"}, f"/a.zip,s3a://b/c.egg,{DECLARE_ARCHIVE}"),
        ({"py_files": ""}, DECLARE_ARCHIVE),
        ({"conf": {"spark.submit.pyFiles": "/a.zip"}}, f"/a.zip,{DECLARE_ARCHIVE}"),
        ({"file": {"spark.submit.pyFiles": "/a.zip"}}, f"/a.zip,{DECLARE_ARCHIVE}"),
        ({"file": {"spark.submit.pyFiles": "/f.zip"}, "py_files": "/a.zip"}, f"/a.zip,{DECLARE_ARCHIVE}"),
        ({"master": "k8s://https://k:6443"}, DECLARE_ARCHIVE),
        (
            {
                "master": "k8s://https://k:6443",
                "deploy_mode": "cluster",
                "conf": {"spark.kubernetes.file.upload.path": "s3a://b/up"},
            },
            DECLARE_ARCHIVE,
        ),
        ({"application": "job.jar"}, None),
        ({"application": "job.jar", "py_files": "/a.zip"}, "/a.zip"),
        ({"application": ""}, None),
    ],
)
def test_a_python_program_gets_the_archive_behind_the_files_of_the_user(
    tmp_path: Path, given: dict[str, Any], submitted: str | None
) -> None:
    py_files = ship(tmp_path, **given).py_files
    assert (py_files.replace(f"{tmp_path}/", "") if py_files else py_files) == submitted
    assert (tmp_path / DECLARE_ARCHIVE).exists() is (submitted is not None and DECLARE_ARCHIVE in submitted)


@pytest.mark.parametrize(
    ("given", "submitted"),
    [
        ({"py_files": "/a.zip"}, DECLARE_ARCHIVE),
        ({"conf": {"spark.yarn.dist.pyFiles": "/a.zip"}}, f"/a.zip,{DECLARE_ARCHIVE}"),
        ({"file": {"spark.yarn.dist.pyFiles": "/a.zip"}}, f"/a.zip,{DECLARE_ARCHIVE}"),
    ],
)
def test_a_driver_in_yarn_gets_the_archive_without_a_warning(
    tmp_path: Path, given: dict[str, Any], submitted: str
) -> None:
    arguments = ship(tmp_path, master="yarn", deploy_mode="cluster", **given)
    assert arguments.conf["spark.yarn.dist.pyFiles"].replace(f"{tmp_path}/", "") == submitted
    assert arguments.py_files == given.get("py_files")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"master": "k8s://https://k:6443", "deploy_mode": "cluster"}, "spark.kubernetes.file.upload.path"),
        ({"file": {"spark.submit.pyFiles": "https://me:hunter2@h/a.zip"}}, "give the files as py_files"),
    ],
)
def test_where_the_archive_cannot_go_the_reason_is_told(tmp_path: Path, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(CannotShipError, match=reason) as raised:
        ship(tmp_path, **given)
    assert "hunter2" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_the_archive_is_for_its_owner_alone_and_never_written_over(tmp_path: Path) -> None:
    ship(tmp_path)
    assert (tmp_path / DECLARE_ARCHIVE).stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        ship(tmp_path)


def test_the_program_declares_for_the_application_that_the_user_has_named(tmp_path: Path) -> None:
    of_file = {"spark.openlineage.namespace": "theirs", "spark.openlineage.appName": "overridden"}
    ship(tmp_path, file=of_file, conf={"spark.openlineage.namespace": "conf"})
    with zipfile.ZipFile(tmp_path / DECLARE_ARCHIVE) as archive:
        target = json.loads(archive.read("spark_lineage/declare.json"))
    names = {"namespace": "conf", "application_name": "app", "application_run_id": "run"}
    assert target == {"directory": str(tmp_path), **names}


def test_equal_launches_give_equal_bytes(tmp_path: Path) -> None:
    content = archive_bytes(IDENTITY, tmp_path)
    assert content == archive_bytes(IDENTITY, tmp_path)
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert names == ["spark_lineage/__init__.py", "spark_lineage/declare.py", "spark_lineage/declare.json"]


def test_the_archive_is_made_also_where_this_package_is_imported_from_an_archive(tmp_path: Path) -> None:
    package = tmp_path / "whole.zip"
    with zipfile.ZipFile(package, "w") as archive:
        for file in (ROOT / "provider").rglob("*.py"):
            archive.write(file, file.relative_to(ROOT / "provider"))
    program = f"""
import sys
sys.path = [{str(package)!r}] + [place for place in sys.path if not place.startswith({str(ROOT)!r} + "/provider")]
from pathlib import Path
from spark_lineage.inject import task_injection
assert task_injection.__file__.startswith({str(package)!r})
sys.stdout.buffer.write(task_injection.archive_bytes({IDENTITY!r}, Path({str(tmp_path)!r})))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == archive_bytes(IDENTITY, tmp_path)


def test_the_archive_is_made_of_whichever_root_python_looks_into_first() -> None:
    """Of an editable install that is the last one in the alphabet, or the first."""
    program = "import sys; from pathlib import Path; from spark_lineage.inject.task_injection import archive_bytes; "
    program += f"sys.stdout.buffer.write(archive_bytes({IDENTITY!r}, Path('/x')))"
    roots = ["listeners", "operators", "provider"]
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": os.pathsep.join(str(ROOT / root) for root in order)},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for order in (roots, roots[::-1])
    }
    assert made == {archive_bytes(IDENTITY, Path("/x"))}
