"""What an event log adds to the listener's events, and what it corrects, on made-up programs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from spark_lineage.merge.execution import Execution, join_executions
from spark_lineage.merge.lineage import Symlink, TaskLineage, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import LineageState
from spark_lineage.naming.identity import DatasetName

SAVE = "execute_save_into_data_source_command"
A, T = DatasetName("file", "/a"), DatasetName("file", "/t")
COPY = Transformation("DIRECT", "IDENTITY")


def outputs(lineage: TaskLineage) -> list[str]:
    return [one.dataset.name for one in lineage.outputs]


def inputs(lineage: TaskLineage) -> list[str]:
    return [one.dataset.name for one in lineage.inputs]


def attempted(lineage: TaskLineage) -> dict[str, str]:
    return {one.dataset.name: one.reason for one in lineage.attempted}


class TestSilence:
    def test_the_target_of_an_update_comes_from_the_log(self, program: Any) -> None:
        run_id = program.run([], [], node="execute_update_command")
        update = Observed(T, edges=frozenset({("x", T, "x", COPY)}))
        program.log(run_id, command="UpdateCommand", inputs=(Observed(T),), outputs=(update,))
        lineage = program.lineage()
        assert (inputs(lineage), outputs(lineage)) == (["/t"], ["/t"])
        assert [write.operation for write in lineage.outputs[0].writes] == ["UPDATE"]
        assert lineage.unknown == ()

    def test_without_a_log_the_event_says_that_something_is_unknown(self, program: Any) -> None:
        for _ in range(2):
            program.run([], [], node="execute_update_command")
        program.run(["/a"], [], node="project", processing="STREAMING")
        program.run([], [], node="execute_delete_command", types=("START", "FAIL"))
        lineage = program.lineage()
        assert [(one.command, one.count) for one in lineage.unknown] == [
            ("app.execute_update_command", 2),
            ("app.project", 1),
        ]

    @pytest.mark.parametrize("is_known", [True, False])
    def test_a_merge_of_hudi_is_unknown_unless_the_log_has_its_table(self, program: Any, is_known: bool) -> None:
        run_id = program.run([], [], node="execute_merge_into_hoodie_table_command")
        program.log(run_id, command="MergeIntoHoodieTableCommand", outputs=(Observed(T),) if is_known else ())
        lineage = program.lineage()
        assert len(lineage.unknown) == (not is_known)
        assert [write.operation for one in lineage.outputs for write in one.writes] == ["MERGE"] * is_known

    @pytest.mark.parametrize("is_listened", [True, False])
    def test_rows_that_a_delete_of_hudi_leaves_keep_their_columns(
        self, program: Any, make_dataset: Any, is_listened: bool
    ) -> None:
        read = [make_dataset("/t", columns=("_hoodie_record_key", "x"))] if is_listened else []
        run_id = program.run(read, [], node="execute_delete_hoodie_table_command")
        program.log(run_id, command="DeleteHoodieTableCommand", inputs=(Observed(T),), outputs=(Observed(T),))
        (output,) = program.lineage().outputs
        columns = [column for column, _ in output.column_lineage.fields] if output.column_lineage else []
        assert columns == ["x"] * is_listened
        assert [write.operation for write in output.writes] == ["DELETE"]

    def test_a_batch_whose_function_wrote_something_is_not_unknown(self, program: Any) -> None:
        with program.running([], node="project", processing="STREAMING"):
            program.run([], ["/t"])
        program.run([], node="filter", processing="STREAMING")
        program.run([], ["/u"])
        assert [one.command for one in program.lineage().unknown] == ["app.filter"]

    def test_an_execution_that_the_listener_never_told_counts(self, program: Any) -> None:
        program.run([], ["/b"])
        program.log(inputs=(Observed(A),))
        assert inputs(program.lineage()) == ["/a"]

    def test_columns_that_only_the_log_traces_are_taken(self, program: Any) -> None:
        run_id = program.run(["/a"], ["/t"])
        program.log(run_id, outputs=(Observed(T, edges=frozenset({("x", A, "x", COPY)})),))
        (written,) = program.lineage().outputs
        assert written.column_lineage is not None
        assert written.column_lineage.fields[0][1][0].dataset == A

    def test_columns_of_both_are_kept(self, program: Any, make_dataset: Any) -> None:
        told = [make_dataset("/t", rows=1, edges={"y": ("/a", "y")}), make_dataset("/u", rows=1)]
        run_id = program.run(["/a"], told)
        other = DatasetName("file", "/u")
        logged = (
            Observed(T, edges=frozenset({("x", A, "x", COPY)})),
            Observed(other, edges=frozenset({("z", A, "z", COPY)})),
        )
        program.log(run_id, outputs=logged)
        columns = {
            one.dataset.name: [column for column, _ in one.column_lineage.fields]
            for one in program.lineage().outputs
            if one.column_lineage is not None
        }
        assert columns == {"/t": ["x", "y"], "/u": ["z"]}


class TestFalsehood:
    def test_a_failure_that_the_listener_calls_complete(self, program: Any, make_dataset: Any) -> None:
        run_id = program.run(["/a"], [make_dataset("/t", edges={"x": ("/a", "x")})], node=SAVE)
        program.log(run_id, is_failed=True)
        lineage = program.lineage()
        assert outputs(lineage) == []
        assert attempted(lineage) == {"/t": "failed"}
        assert inputs(lineage) == ["/a"]

    def test_a_write_that_the_log_saw_end_well_needs_no_statistics(self, program: Any, make_dataset: Any) -> None:
        run_id = program.run(["/a"], [make_dataset("/t", edges={"x": ("/a", "x")})], node=SAVE)
        assert [one.name for one in program.lineage().unconfirmed] == ["/t"]
        program.log(run_id, mode="Append", has_jobs=True)
        lineage = program.lineage()
        assert (outputs(lineage), lineage.unconfirmed) == (["/t"], ())

    @pytest.mark.parametrize(
        ("node", "has_jobs", "is_written"),
        [
            (SAVE, False, False),
            (SAVE, True, True),
            ("execute_insert_into_hadoop_fs_relation_command", True, False),
            ("adaptive_spark_plan", True, False),
        ],
    )
    def test_mode_ignore(self, program: Any, make_dataset: Any, node: str, has_jobs: bool, is_written: bool) -> None:
        types = ("START", "RUNNING", "COMPLETE") if has_jobs else ("START", "COMPLETE")
        run_id = program.run(["/a"], [make_dataset("/t", lifecycle="CREATE")], node=node, types=types)
        program.log(run_id, mode="Ignore", has_jobs=has_jobs)
        lineage = program.lineage()
        assert outputs(lineage) == (["/t"] if is_written else [])
        assert attempted(lineage) == ({} if is_written else {"/t": "not written"})

    @pytest.mark.parametrize(("mode", "sources", "operation"), [("Append", 2, "INSERT"), ("Overwrite", 1, "OVERWRITE")])
    def test_an_append_that_the_listener_calls_an_overwrite(
        self, program: Any, make_dataset: Any, mode: str, sources: int, operation: str
    ) -> None:
        for source in ("/a", "/b"):
            told = make_dataset("/t", edges={"x": (source, "x")}, lifecycle="OVERWRITE")
            run_id = program.run([source], [told], node=SAVE)
            program.log(run_id, command="SaveIntoDataSourceCommand", mode=mode, outputs=(Observed(T),))
        (written,) = program.lineage().outputs
        assert written.column_lineage is not None
        assert [len(made_from) for _, made_from in written.column_lineage.fields] == [sources]
        assert [write.operation for write in written.writes] == [operation]

    def test_a_write_without_an_end_that_the_log_saw_end_is_kept_when_the_task_fails(self, program: Any) -> None:
        run_id = program.run(["/a"], ["/t"], types=("START",))
        assert attempted(program.lineage(exit_code=137)) == {"/t": "unfinished"}
        program.log(run_id)
        assert outputs(program.lineage(exit_code=137)) == ["/t"]

    def test_a_completion_made_up_for_a_killed_write_matches_no_execution(self, program: Any) -> None:
        started = program.run(["/a"], ["/t"], types=("START",))
        program.log(started, ended=None, is_failed=None)
        program.end()
        program.run(["/a"], ["/t"], types=("COMPLETE",))
        lineage = program.lineage(exit_code=143)
        assert (outputs(lineage), attempted(lineage)) == ([], {"/t": "unfinished"})

    def test_a_completion_without_a_start_is_known_by_its_end(self, program: Any) -> None:
        run_id = program.run(["/a"], ["/t"], types=("COMPLETE",))
        ended = program.events[-1]["eventTime"]
        assert ended
        program.log(run_id, is_failed=True)
        assert attempted(program.lineage()) == {"/t": "failed"}


class TestPartitions:
    """An overwrite of one partition leaves the others."""

    def fill(self, program: Any, make_dataset: Any, source: str, *, lifecycle: str | None = None, **told: Any) -> None:
        written = make_dataset("/t", rows=1, lifecycle=lifecycle, edges={"x": (source, "id")})
        program.log(program.run([source], [written]), **told)

    def test_a_static_one(self, program: Any, make_dataset: Any) -> None:
        self.fill(program, make_dataset, "/a", partition=("day=1",))
        self.fill(program, make_dataset, "/b", partition=("day=2", "hour=1"))
        self.fill(program, make_dataset, "/c", partition=("day=2",), is_partial=True, lifecycle="OVERWRITE")
        (written,) = program.lineage().outputs
        assert [name.name for name in written.fed_by] == ["/a", "/c"]
        assert written.statistics is not None
        assert written.statistics.row_count == 2

    def test_dynamic_ones_cannot_be_told(self, program: Any, make_dataset: Any) -> None:
        self.fill(program, make_dataset, "/a", partition=("day=1",))
        self.fill(program, make_dataset, "/b", is_partial=True, lifecycle="OVERWRITE")
        (written,) = program.lineage().outputs
        assert [name.name for name in written.fed_by] == ["/a", "/b"]

    def test_an_overwrite_of_all_forgets_them(self, program: Any, make_dataset: Any) -> None:
        self.fill(program, make_dataset, "/a", partition=("day=1",))
        self.fill(program, make_dataset, "/b", lifecycle="OVERWRITE")
        (written,) = program.lineage().outputs
        assert [name.name for name in written.fed_by] == ["/b"]


class TestMatching:
    def test_of_two_executions_at_one_moment_each_run_gets_its_own(self, program: Any, make_dataset: Any) -> None:
        first = program.run(["/a"], [make_dataset("/t", lifecycle="CREATE")], node=SAVE)
        second = program.run(["/a"], [make_dataset("/u", lifecycle="CREATE")], node=SAVE)
        for event in program.events:
            if event["run"]["runId"] == second:
                twin = next(
                    one
                    for one in program.events
                    if one["run"]["runId"] == first and one["eventType"] == event["eventType"]
                )
                event["eventTime"] = twin["eventTime"]
        program.log(first, outputs=(Observed(DatasetName("file", "/u")),), is_failed=True)
        program.log(first, outputs=(Observed(T),))
        lineage = program.lineage()
        assert (outputs(lineage), attempted(lineage)) == (["/t"], {"/u": "failed"})

    def test_another_application_says_nothing_of_this_one(self, program: Any) -> None:
        run_id = program.run(["/a"], ["/t"])
        program.log(run_id, is_failed=True)
        program.executions = [
            Execution("local-2", one.execution_id, one.root_execution_id, one.started, one.ended, one.is_failed)
            for one in program.executions
        ]
        assert outputs(program.lineage()) == ["/t"]

    def test_without_an_event_of_the_application_its_job_is_the_parent_of_its_actions(self, program: Any) -> None:
        run_id = program.run(["/a"], ["/t"])
        program.events = [event for event in program.events if event["run"]["runId"] == run_id]
        for event in program.events:
            event["run"]["facets"]["spark_applicationDetails"] = {"applicationId": "local-1"}
        (application,) = program.lineage().applications
        assert (application.job_namespace, application.job_name, application.is_ended) == ("ns", "app", False)

    def test_two_contexts_that_share_a_run_both_count(self, program: Any) -> None:
        contexts = {}
        for context, table in (("local-1", "/t"), ("local-2", "/u")):
            run_id = program.run(["/a"], [table])
            program.log(run_id, is_failed=table == "/t")
            contexts[run_id] = context
        for event in program.events:
            if (context := contexts.get(event["run"]["runId"])) is not None:
                event["run"]["facets"]["spark_applicationDetails"] = {"applicationId": context}
        program.executions = [
            structs.replace(one, application_id=context)
            for one, context in zip(program.executions, contexts.values(), strict=True)
        ]
        lineage = program.lineage()
        assert (outputs(lineage), attempted(lineage)) == (["/u"], {"/t": "failed"})
        assert [one.application_id for one in lineage.applications] == ["local-1", "local-2"]

    def test_events_without_an_application_id_are_those_of_the_only_log(self, program: Any) -> None:
        run_id = program.run(["/a"], ["/t"])
        program.log(run_id, is_failed=True)
        for event in program.events:
            event["run"]["facets"].pop("spark_applicationDetails", None)
        assert attempted(program.lineage()) == {"/t": "failed"}

    def test_the_files_of_an_rdd_take_the_place_of_the_directory_around_them(
        self, program: Any, make_dataset: Any
    ) -> None:
        folders = [make_dataset("/in", columns=()), make_dataset("/other", columns=())]
        run_id = program.run(folders, ["/out"], kind="RDD_JOB", node="map_partitions_hadoop")
        program.log(run_id, inputs=(Observed(DatasetName("file", "/in/a.txt")),))
        (told,) = program.executions
        program.executions = [structs.replace(told, execution_id=-1, root_execution_id=-1)]
        lineage = program.lineage()
        assert inputs(lineage) == ["/in/a.txt", "/other"]
        assert [name.name for name in lineage.outputs[0].fed_by] == ["/in/a.txt", "/other"]

    def test_files_that_a_job_names_take_the_place_of_the_directory_around_them(
        self, program: Any, make_dataset: Any
    ) -> None:
        program.run(["/in/other.csv"], ["/elsewhere"])
        run_id = program.run([make_dataset("/in", columns=())], ["/out"])
        read = (Observed(DatasetName("file", "/in/a.txt")),)
        program.log(run_id, inputs=read, outputs=(Observed(DatasetName("file", "/out")),), has_rdds=True)
        lineage = program.lineage()
        assert inputs(lineage) == ["/in/a.txt", "/in/other.csv"]
        (written,) = (one for one in lineage.outputs if one.dataset.name == "/out")
        assert [name.name for name in written.fed_by] == ["/in/a.txt"]
        assert lineage.unread == ()

    @pytest.mark.parametrize(("directories", "found"), [
        (["/wh/orders"], ["/wh/orders"]),
        (["/wh/orders/day=1", "/wh/orders/day=2"], ["/wh/orders"]),
        (["/elsewhere/o"], ["/elsewhere/o"]),
        # Each directory may be that of the table.
        (["/elsewhere/o", "/elsewhere/p"], ["/elsewhere/o", "/elsewhere/p", "db.orders"]),
    ])  # fmt: skip
    @pytest.mark.parametrize("kind", ["RDD_JOB", "SQL_JOB"])
    def test_a_table_that_the_scan_of_an_rdd_names_is_where_the_listener_has_it(
        self, program: Any, make_dataset: Any, kind: str, directories: list[str], found: list[str]
    ) -> None:
        run_id = program.run([make_dataset(name, columns=()) for name in directories], ["/out"], kind=kind, node="save")
        link = Symlink("file:/wh", "db.orders", "TABLE")
        number = -1 if kind == "RDD_JOB" else 0
        read = (Observed(link.dataset, frozenset({link})),)
        program.log(run_id, execution_id=number, root_execution_id=number, inputs=read, has_rdds=True)
        assert inputs(program.lineage()) == found

    @pytest.mark.parametrize(("others", "unread"), [([], []), (["/in/b.csv"], ["Scan csv: its files"])])
    def test_files_that_no_event_names_are_unread_where_their_directory_is_left_out(
        self, program: Any, make_dataset: Any, others: list[str], unread: list[str]
    ) -> None:
        for other in others:
            program.run([other], ["/elsewhere"])
        run_id = program.run([make_dataset("/in", columns=())], ["/out"])
        program.log(run_id, unread=("Scan csv: its files",), has_rdds=True)
        lineage = program.lineage()
        assert inputs(lineage) == (others or ["/in"])
        assert [one.part for one in lineage.unread] == unread

    def test_rows_of_an_rdd_fill_a_table_that_has_no_numbers(self, program: Any, make_dataset: Any) -> None:
        """A write of a frame whose rows went through an RDD has neither edges nor statistics for Delta."""
        run_id = program.run([make_dataset("/in", columns=())], [make_dataset("/t", lifecycle="CREATE")])
        read = (Observed(DatasetName("file", "/in/a.txt")),)
        program.log(run_id, inputs=read, outputs=(Observed(T),), has_rdds=True, has_jobs=True, command="SaveCommand")
        program.run(["/t"], ["/out"])
        assert inputs(program.lineage()) == ["/in/a.txt"]

    def test_rdd_runs_are_no_executions(self, program: Any) -> None:
        run_id = program.run(["/a"], ["/t"], kind="RDD_JOB", node="save")
        program.log(run_id, is_failed=True)
        assert outputs(program.lineage()) == ["/t"]


class TestNested:
    def test_a_write_inside_a_batch_is_fed_by_the_batch_as_the_log_says(self, program: Any) -> None:
        batch = program.run(["/a"], node="columnar_to_row", processing="STREAMING")
        written = program.run([], ["/t"])
        program.log(batch, query_id="q")
        program.log(written, root_execution_id=0)
        assert [name.name for name in program.lineage().outputs[0].fed_by] == ["/a"]


class TestFold:
    FULL = Execution("app", 1, 0, 1.0, 2.0, False, True, "WriteCommand", "Append", outputs=(Observed(T),))
    START = Execution("app", 1, 0, 1.0, command="WriteCommand")

    def test_two_tellings_of_an_execution_are_one_in_any_order(self) -> None:
        for tellings in ((self.FULL, self.START), (self.START, self.FULL), (self.FULL, self.FULL)):
            state = LineageState()
            for telling in tellings:
                state.add_execution(telling)
            assert state.executions == {("app", "", 1): self.FULL}

    def test_shards_of_a_log_are_one(self) -> None:
        left, right = LineageState(), LineageState()
        left.add_execution(self.START)
        right.add_execution(self.FULL)
        left.merge(right)
        left.merge(right)
        assert left.executions == {("app", "", 1): self.FULL}

    def test_a_failure_sticks(self) -> None:
        failed = Execution("app", 1, 0, 1.0, 2.0, is_failed=True)
        assert join_executions(self.FULL, failed).is_failed is True
        assert join_executions(failed, self.FULL).is_failed is True


class TestSchemaEvolution:
    def test_a_column_that_a_merge_adds_has_no_edge_from_the_table_itself(
        self, program: Any, make_dataset: Any
    ) -> None:
        table = make_dataset("/t", columns=("id",))
        run_id = program.run([table, "/a"], [make_dataset("/t", columns=("id", "added"))], node="execute_merge")
        edges = frozenset((name, place, name, COPY) for name in ("id", "added") for place in (T, A))
        target = Observed(T, edges=edges)
        program.log(run_id, command="MergeIntoCommand", inputs=(Observed(T), Observed(A)), outputs=(target,))
        (output,) = program.lineage().outputs
        assert output.column_lineage is not None
        assert {(name, one.dataset.name) for name, made_from in output.column_lineage.fields for one in made_from} == {
            ("id", "/a"),
            ("id", "/t"),
            ("added", "/a"),
        }
