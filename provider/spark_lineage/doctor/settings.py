"""Whether each setting fits, and whether something was meant as a setting and is none."""

from __future__ import annotations

from collections.abc import Iterator

from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.report import endpoints_told, options_told, settings_told, shown
from spark_lineage.doctor.setup import Setup
from spark_lineage.doctor.unknown_settings import unknown_settings, unreadable
from spark_lineage.settings import SECTION, Settings
from spark_lineage.settings.places import section

_SEE = "spark-lineage config shows all of them"


def check_settings(setup: Setup) -> Iterator[Finding]:
    """Read them as a task does that has no argument of its own."""
    for name in unreadable():
        yield problem(
            f"{name} is set, which Airflow does not take for an option of [{SECTION}]: no setting can be read",
            "take it out, or write all of it in capitals: until then jobs run without lineage",
        )
        return
    places, conn_id = setup.places, setup.spark.conn_id
    told = [*settings_told(places, conn_id), *options_told(places, conn_id)]
    for row in told:
        if row.error:
            yield problem(f"{row.error} ({row.source})", "until then jobs run without lineage")
    for row in endpoints_told(places, conn_id):
        if row.error:
            yield warning(f"{row.error} ({row.source})", "until then the cluster is not asked how a job ended")
    for text in unknown_settings(section(), places.extra, conn_id):
        yield problem(text, f"correct it; {_SEE}")
    # The airflow.cfg that Airflow writes repeats every default.
    defaults = {one.name: shown(one.name, one.value) for one in Settings.each({}, {}, lambda _: None)}
    own = [row for row in told if row.source != "default" and row.value not in ("", defaults.get(row.name))]
    yield ok(f"{len(told)} settings, {len(own)} of them set; {_SEE}")
