"""Where the program of a task is, in a bundle with the attributes of Airflow's GitDagBundle (Git provider 1.0.1)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openlineage.client.generated.source_code_location_job import SourceCodeLocationJobFacet

from spark_lineage.emit.run_event import PRODUCER
from spark_lineage.emit.task_event import source_code

COMMIT = "e96a133e15baea98c9f616f6a4dffd9a61a2550f"


def worker(directory: Path, *, subdir: str | None = None, version: str | None = COMMIT, template: str | None) -> Any:
    """A task instance as a worker has it."""
    bundle = SimpleNamespace(
        path=directory,
        subdir=subdir,
        version=version,
        tracking_ref="main",
        repo_url="https://me:hunter2@github.com/shop/etl.git",
        view_url_template=lambda: template,
        get_current_version=lambda: COMMIT,
    )
    return SimpleNamespace(bundle_instance=bundle)


@pytest.mark.parametrize("version", [COMMIT, None])
def test_a_program_of_a_bundle_is_in_its_repository(tmp_path: Path, version: str | None) -> None:
    template = "https://github.com/shop/etl/tree/{version}/dags"
    task_instance = worker(tmp_path, subdir="dags", version=version, template=template)
    facet = SourceCodeLocationJobFacet(
        type="git",
        url=f"https://github.com/shop/etl/tree/{COMMIT}/dags/jobs/daily%20report.py",
        repoUrl="https://github.com/shop/etl.git",
        path="dags/jobs/daily report.py",
        version=COMMIT,
        branch="main",
        producer=PRODUCER,
    )
    found = source_code(str(tmp_path / "jobs" / "daily report.py"), task_instance)
    assert found == {"sourceCodeLocation": facet}


def test_a_repository_whose_pages_are_unknown_is_named(tmp_path: Path) -> None:
    found = source_code(str(tmp_path / "a.py"), worker(tmp_path, template=None))["sourceCodeLocation"]
    assert (found.type, found.url, found.path) == ("git", (tmp_path / "a.py").as_uri(), "a.py")


@pytest.mark.parametrize("application", ["/elsewhere/a.py", "s3://jars/a.jar", ""])
def test_what_is_not_in_the_bundle_is_where_spark_finds_it(tmp_path: Path, application: str) -> None:
    found = source_code(application, worker(tmp_path, template="https://github.com/shop/etl/tree/{version}"))
    assert found == source_code(application)
    urls = [(facet.type, facet.url) for facet in found.values()]
    assert urls == ([("file", application.replace("/elsewhere", "file:///elsewhere"))] if application else [])


@pytest.mark.parametrize("bundle", [None, SimpleNamespace(path="/elsewhere"), SimpleNamespace(repo_url="broken")])
def test_without_a_git_bundle_a_program_is_a_file(bundle: Any) -> None:
    found = source_code("/elsewhere/a.py", SimpleNamespace(bundle_instance=bundle))["sourceCodeLocation"]
    assert (found.type, found.url) == ("file", "file:///elsewhere/a.py")
