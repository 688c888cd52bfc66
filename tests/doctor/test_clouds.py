"""How far the operators of cloud services were tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_lineage.doctor.clouds import check_clouds

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_installed_provider_of_a_cloud_is_named(setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "apache_airflow_providers_amazon-9.39.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: apache-airflow-providers-amazon\nVersion: 9.39.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = check_clouds(setup())
    assert found.level == "ok"
    assert "tried against moto; not seen on the service itself" in found.text
    assert "9.39.0" in found.text
