"""An application that only its event log tells of."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec import structs

from spark_lineage.merge.execution import Execution, LoggedApplication
from spark_lineage.merge.lineage import Application, Attempt, ParentRun, TaskLineage
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import LineageState, decode_state, encode_state, utc
from spark_lineage.merge.task import identity_of, task_lineage
from spark_lineage.naming.identity import DatasetName

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
        assert folded(*order).logged == {("app-1", ""): ENDED}
        one, other = folded(*order[:2]), folded(*order[2:])
        one.merge(other)
        assert one.logged == {("app-1", ""): ENDED}
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
    state.applications["listened", "app-1"] = Application("listened", "ns", "job", application_id="app-1")
    lineage = task_lineage(state, "COMPLETE")
    assert [one.run_id for one in lineage.applications] == ["listened"]
    assert (lineage.parent, lineage.started_at) == (None, None)


class TestSilentListener:
    """A listener reports one application of a task, and nothing of a second one, whose event log is there."""

    SILENT = structs.replace(BEGUN, application=structs.replace(APPLICATION, application_id="app-2"))

    def lineage(self, second: LoggedApplication, parent: ParentRun | None = None) -> TaskLineage:
        state = folded(ENDED, second)
        state.applications["run-1", "app-1"] = APPLICATION
        state.parents |= {"run-1": parent} if parent is not None else {}
        told = {"is_failed": False, "command": "InsertIntoHadoopFsRelationCommand", "has_jobs": True}
        output = Observed(DatasetName("file", "/b"))
        state.add_execution(Execution("app-2", 0, 0, 21.0, 22.0, outputs=(output,), **told))
        return task_lineage(decode_state(encode_state(state)), "COMPLETE")

    def test_application_of_the_same_run_is_read_from_its_log(self) -> None:
        lineage = self.lineage(self.SILENT)
        assert [one.dataset.name for one in lineage.outputs] == ["/b"]
        assert [one.application_id for one in lineage.applications] == ["app-1", "app-2"]

    def test_application_of_the_same_parent_is_read_from_its_log(self) -> None:
        other = structs.replace(self.SILENT.application, run_id="run-2")
        assert self.lineage(structs.replace(self.SILENT, application=other), PARENT).outputs

    def test_application_of_another_task_is_left_out(self) -> None:
        other = structs.replace(self.SILENT.application, run_id="run-2")
        lineage = self.lineage(structs.replace(self.SILENT, application=other, parent=None), PARENT)
        assert (lineage.outputs, [one.application_id for one in lineage.applications]) == ((), ["app-1"])


FIRST = structs.replace(BEGUN, attempt_id="1")
SECOND = structs.replace(BEGUN, started=20.0, attempt_id="2")


def written(attempt_id: str, name: str, *, started: float, ended: float | None = None) -> Execution:
    """The first execution of an attempt, which writes a directory; its query is read within."""
    output = Observed(DatasetName("file", name))
    told = {"is_failed": None if ended is None else False, "command": "InsertIntoHadoopFsRelationCommand"}
    return Execution("app-1", 0, 0, started, ended, has_jobs=True, outputs=(output,), attempt_id=attempt_id, **told)


def attempts(*told: LoggedApplication | Execution) -> LineageState:
    state = LineageState()
    for one in told:
        fold = state.add_application if isinstance(one, LoggedApplication) else state.add_execution
        fold(one)
    return decode_state(encode_state(state))


class TestAttempts:
    """YARN starts an application again, under its id, and its executions count from 0 again."""

    def test_what_each_has_written_is_there(self) -> None:
        told = (FIRST, written("1", "/a", started=6.0, ended=7.0), SECOND, written("2", "/b", started=21.0, ended=22.0))
        for order in permutations(told):
            lineage = task_lineage(attempts(*order), "COMPLETE", has_actions=True)
            assert [one.dataset.name for one in lineage.outputs] == ["/a", "/b"]
            assert [one.run_id for one in lineage.actions] == ["app-1/1/0", "app-1/2/0"]

    def test_what_an_earlier_one_had_not_finished_is_no_output_of_a_task_that_succeeds(self) -> None:
        told = (FIRST, written("1", "/a", started=6.0), SECOND, written("2", "/b", started=21.0))
        for order in permutations(told):
            lineage = task_lineage(attempts(*order), "COMPLETE")
            assert [one.dataset.name for one in lineage.outputs] == ["/b"]
            assert lineage.attempted == (Attempt(DatasetName("file", "/a"), "unfinished"),)

    @pytest.mark.parametrize("is_ended", [False, True])
    def test_the_last_one_tells_whether_the_application_has_ended(self, is_ended: bool) -> None:
        first = structs.replace(FIRST, ended=None if is_ended else 9.0)
        last = structs.replace(SECOND, ended=29.0 if is_ended else None)
        for order in permutations((first, last)):
            (application,) = task_lineage(attempts(*order), "COMPLETE").applications
            assert (application.run_id, application.is_ended) == ("run-1", is_ended)
