"""Where the settings of a task come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launches import location

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"


def test_settings_come_from_the_connection_and_from_the_section(bench: Any) -> None:
    bench.connection["extra"] = {"lineage_tags": {"team": "of-the-extra"}}
    bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_TAGS"] = "team:of-the-section"
    assert bench.run().command["conf"]["spark.openlineage.job.tags"] == "team:of-the-extra"
    conf = bench.run(lineage_tags={"team": "of-the-argument"}).command["conf"]
    assert conf["spark.openlineage.job.tags"] == "team:of-the-argument"


def test_namespace_and_name_of_the_application_are_the_users_where_they_are_set(bench: Any) -> None:
    own = {"spark.openlineage.namespace": "mine", "spark.openlineage.appName": "orders"}
    conf = bench.run(conf=own).command["conf"]
    assert {key: conf[key] for key in own} == own


def test_by_default_lineage_is_written_below_airflows_home(bench: Any, laboratory: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], lineage_dir=None)
    file = location(outcome)
    assert file.is_relative_to(laboratory.home / "spark_lineage" / "shop" / "manual" / "load")
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_connection_that_is_not_there_is_the_providers_business(bench: Any) -> None:
    outcome = bench.run(conn_id="nobody_made_it", lineage=[EVENTS])
    assert outcome.command["argv"][:2] == ["--master", "yarn"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_lineage_can_be_switched_off_for_a_whole_connection(bench: Any) -> None:
    bench.connection["extra"] = {"lineage_enabled": "false"}
    outcome = bench.run()
    assert outcome.command["conf"] == {}
    assert outcome.lineage is None
