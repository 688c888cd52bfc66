"""Settings that have no effect: in the extra of Livy, and listeners that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.doctor.settings import check_settings

pytestmark = pytest.mark.airflow


def test_settings_in_the_extra_of_livy_are_sent_as_headers(setup: Any) -> None:
    extra = {"event_log_dir": "/logs", "hostnameList.db": "a;b", "verify": False}
    found = [one for one in check_settings(setup(master="livy://host", extra=extra)) if one.level == "warning"]
    (one,) = found
    assert "my_spark as an HTTP header: event_log_dir, hostnameList.db" in one.text


@pytest.mark.parametrize(
    ("master", "extra"), [("livy://host", {"verify": False}), ("yarn", {"event_log_dir": "/logs"})]
)
def test_other_extras_are_not(setup: Any, master: str, extra: Any) -> None:
    assert [one.level for one in check_settings(setup(master=master, extra=extra))] == ["ok"]


@pytest.mark.parametrize("name", ["no_such_package.Listener", "spark_lineage.listeners.metrics_listener.NoSuch"])
def test_listener_that_cannot_be_imported_is_reported(setup: Any, name: str) -> None:
    good = "spark_lineage.listeners.metrics_listener.MetricsListener"
    (one, _) = check_settings(setup(lineage_listeners=(good, name)))
    assert one.level == "warning"
    assert f"lineage_listeners names {name}, which cannot be imported here" in one.text
