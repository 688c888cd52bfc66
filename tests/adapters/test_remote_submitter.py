"""What a service submits has none of the properties of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.adapters.adapter import remote_submitter
from spark_lineage.inject import preparation
from spark_lineage.inject.installation import SparkInstallation
from spark_lineage.inject.properties import SubmitArguments

if TYPE_CHECKING:
    import pytest


def test_spark_defaults_of_this_machine_are_not_those_of_a_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.eventLog.dir /of/the/worker\n")
    installed = SparkInstallation(tmp_path, "4.2.0", "2.13")
    monkeypatch.setattr(preparation, "find_installation", lambda *_: installed)
    found = preparation.user_properties(SubmitArguments({"spark.app.name": "x"}), remote_submitter("livy"))
    assert (found.properties, found.deploy_mode) == ({"spark.app.name": "x"}, "cluster")
