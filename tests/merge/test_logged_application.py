"""An application that only its event log tells of."""

from __future__ import annotations

from itertools import permutations

from msgspec import structs

from spark_lineage.merge.execution import LoggedApplication
from spark_lineage.merge.lineage import Application, ParentRun
from spark_lineage.merge.state import LineageState, decode_state, encode_state, utc
from spark_lineage.merge.task import identity_of, task_lineage

PARENT = ParentRun("01890a5d-ac96-7dde-8a63-0123456789ab", "airflow", "shop.load")
APPLICATION = Application("run-1", "airflow", "shop_load_spark", application_id="app-1", master="yarn")
BEGUN = LoggedApplication(APPLICATION, started=5.0, parent=PARENT)
ENDED = structs.replace(BEGUN, ended=9.0)
# A log whose first part is gone knows of a later start.
LATER = structs.replace(BEGUN, started=6.0)


def folded(*told: LoggedApplication) -> LineageState:
    state = LineageState()
    for one in told:
        state.add_application(one)
    return state


def test_what_is_told_of_it_is_joined_whichever_comes_first_and_over_shards() -> None:
    for order in permutations((BEGUN, ENDED, LATER, BEGUN)):
        assert folded(*order).logged == {"app-1": ENDED}
        one, other = folded(*order[:2]), folded(*order[2:])
        one.merge(other)
        assert one.logged == {"app-1": ENDED}
        assert decode_state(encode_state(one)).logged == one.logged


def test_the_lineage_has_its_application_its_times_and_its_task() -> None:
    state = folded(BEGUN, ENDED)
    lineage = task_lineage(state, "COMPLETE")
    assert lineage.applications == (
        Application("run-1", "airflow", "shop_load_spark", application_id="app-1", master="yarn", is_ended=True),
    )
    assert (lineage.started_at, lineage.ended_at) == (utc(5.0), utc(9.0))
    assert identity_of(lineage, state) == PARENT


def test_where_a_listener_tells_of_applications_the_log_adds_none() -> None:
    state = folded(ENDED)
    state.applications["listened"] = Application("listened", "ns", "job", application_id="app-1")
    lineage = task_lineage(state, "COMPLETE")
    assert [one.run_id for one in lineage.applications] == ["listened"]
    assert (lineage.parent, lineage.started_at) == (None, None)
