"""The app of the tab: its code is public, and what it finds in the database is not."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from airflow_home import _airflow_env

if TYPE_CHECKING:
    from pathlib import Path

    from warm_python import WarmPython

PROGRAM = """
from starlette.testclient import TestClient
from airflow.api_fastapi.app import create_app
with TestClient(create_app(apps="core")) as client:
    paths = ("lineage.js", "writer?namespace=file&name=a", "writer")
    codes = [client.get(f"/spark-lineage/{path}").status_code for path in paths]
print(codes)
"""


@pytest.mark.airflow
def test_writer_wants_a_user_and_the_code_does_not(
    tmp_path: Path, airflow_database: Path, warm_python: WarmPython
) -> None:
    shutil.copy(airflow_database, tmp_path / "airflow.db")
    done = warm_python.run("-c", PROGRAM, env=_airflow_env(tmp_path), is_one_stream=True)
    assert done.stdout.splitlines()[-1] == "[200, 401, 401]", done.stdout
