"""Packages that fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_lineage.doctor.versions import check_versions

pytestmark = pytest.mark.oldest


def installed(directory: Path, name: str, version: str) -> None:
    """Have a package installed in a directory of ``sys.path``, as pip notes it."""
    info = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_what_is_installed_here_fits(setup: Any) -> None:
    (found,) = check_versions(setup())
    assert found.level == "ok"
    assert "apache-airflow-providers-openlineage 2." in found.text


def test_an_old_client(setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "openlineage-python", "1.20.0")
    monkeypatch.syspath_prepend(tmp_path)
    first, _ = check_versions(setup())
    assert (first.level, first.text) == ("problem", "openlineage-python 1.20.0 is too old")
