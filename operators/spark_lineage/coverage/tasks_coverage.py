"""The verdict on each Spark task: ``whole``, ``counted``, ``none`` or ``unknown``, and why.

All facts are rows of Airflow's database and its configuration: the serialized DAGs, and what the last runs left for the
tab "Lineage". The outbox of this host adds what its backends have not taken.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

from spark_lineage.coverage.spark_tasks import SparkTask, spark_tasks
from spark_lineage.deliver.outbox import Outbox, default_directory
from spark_lineage.deliver.outgoing import SpoolError
from spark_lineage.emit.task_event import emission
from spark_lineage.policy import _CONNECTIONS, _KINDS, Kind, _is_wanted
from spark_lineage.settings.places import TaskSettings, option
from spark_lineage.view import XCOM_KEY

Verdict = Literal["whole", "counted", "none", "unknown"]
RUNS = 3
"""The last runs of each DAG that are judged."""
_ENDED = ("success", "failed")
_NAMED = 3
_NO_SOURCE = "no event of its driver came, and no event log was to be read: see the log of the task"
_NO_XCOM = (
    "left no lineage in Airflow's database: its connection switches lineage off, it ran before the task had lineage, "
    "its XComs were removed, or lineage broke: see the log of the task"
)


@dataclass(frozen=True)
class Row:
    """The coverage of one task; ``runs`` were judged."""

    operator: str
    dag_id: str
    task_id: str
    verdict: Verdict
    why: str
    runs: int = 0


@dataclass
class _Runs:
    """The ended task instances of the last runs, the newest first: what each left for the tab, None for nothing."""

    views: list[Mapping[str, Any] | None] = field(default_factory=list)
    open_state: str = ""


def coverage() -> list[Row]:
    """Return each Spark task of the installation, by operator, DAG and task.

    It sends two queries, and reads the outbox of this user on this host.

    :raises sqlalchemy.exc.SQLAlchemyError: when the database cannot be read
    """
    from airflow import settings
    from sqlalchemy.orm import Session

    with Session(settings.engine) as session:
        tasks = [task for data, is_paused in _dags(session) for task in spark_tasks(data, is_paused=is_paused)]
        runs = _runs(session, {task.dag_id for task in tasks if task.has_lineage})
    has_policy, undelivered = any(task.is_by_policy for task in tasks), _undelivered()
    rows = []
    for task in tasks:
        ran = runs.get((task.dag_id, task.task_id), _Runs())
        verdict, why = _config_verdict(task, has_policy=has_policy) or _runs_verdict(task, ran, undelivered)
        rows.append(Row(task.operator, task.dag_id, task.task_id, verdict, why, len(ran.views)))
    return sorted(rows, key=lambda row: (row.operator, row.dag_id, row.task_id))


def totals(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Return how many tasks have each verdict, by operator."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        each = counts.setdefault(row.operator, dict.fromkeys(("whole", "counted", "none", "unknown"), 0))
        each[row.verdict] += 1
    return counts


def _dags(session: Any) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Return the latest serialization of each DAG that is there, and whether the DAG is paused."""
    from airflow.models.dag import DagModel
    from airflow.models.serialized_dag import SerializedDagModel
    from sqlalchemy import func, select

    latest = select(SerializedDagModel.dag_id, func.max(SerializedDagModel.created_at).label("at")).group_by(
        SerializedDagModel.dag_id
    )
    newest = latest.subquery()
    # Airflow 2 has the opposite.
    is_there = ~DagModel.is_stale if hasattr(DagModel, "is_stale") else DagModel.is_active
    query = (
        select(SerializedDagModel, DagModel.is_paused)
        .join(newest, (SerializedDagModel.dag_id == newest.c.dag_id) & (SerializedDagModel.created_at == newest.c.at))
        .join(DagModel, DagModel.dag_id == SerializedDagModel.dag_id)
        .where(is_there)
        .execution_options(yield_per=100)
    )
    for model, is_paused in session.execute(query):
        yield model.data or {}, is_paused
        session.expunge(model)


def _runs(session: Any, dag_ids: set[str]) -> dict[tuple[str, str], _Runs]:
    """Return what the last runs of DAGs left, by DAG and task; nothing before Airflow 3.1, which has no tab."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_1_PLUS
    from sqlalchemy import func, select

    found: dict[tuple[str, str], _Runs] = defaultdict(_Runs)
    if not dag_ids or not AIRFLOW_V_3_1_PLUS:
        return found
    at = func.row_number().over(partition_by=DagRun.dag_id, order_by=DagRun.id.desc()).label("at")
    ranked = select(DagRun.dag_id, DagRun.run_id, at).where(DagRun.dag_id.in_(dag_ids)).subquery()
    instance, xcom = TaskInstance, XComModel
    query = (
        select(instance.dag_id, instance.task_id, instance.state, xcom.value)
        .join(ranked, (instance.dag_id == ranked.c.dag_id) & (instance.run_id == ranked.c.run_id))
        .outerjoin(
            xcom,
            (xcom.dag_id == instance.dag_id)
            & (xcom.task_id == instance.task_id)
            & (xcom.run_id == instance.run_id)
            & (xcom.map_index == instance.map_index)
            & (xcom.key == XCOM_KEY),
        )
        .where(ranked.c.at <= RUNS)
        .order_by(ranked.c.at)
        .execution_options(yield_per=1000)
    )
    for dag_id, task_id, state, value in session.execute(query):
        runs = found[dag_id, task_id]
        if state in _ENDED:
            runs.views.append(_view(value))
        elif state not in ("skipped", "upstream_failed", "removed", None):
            runs.open_state = str(state)
    return found


def _view(value: Any) -> Mapping[str, Any] | None:
    """Return what the verdict needs of an XCom of up to 48 kB; None for none, or for that of something else."""
    try:
        view = json.loads(value) if isinstance(value, str) else value
        counts = Counter({str(name): int(count) for name, count in (*view.get("unknown", ()), *view.get("unread", ()))})
        if aside := int(view.get("set_aside", 0)):
            counts["lines that could not be used"] = aside
        no_source = "" if view.get("evidence") else _NO_SOURCE
        return {
            "run_id": str(view["run_id"]),
            "why": str(view.get("why") or no_source),
            "counts": counts,
            "v": view["v"],
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _undelivered() -> Mapping[str, str]:
    """Return, by run id, what became of the events that a backend has not taken."""
    found: dict[str, str] = {}
    try:
        for destination, spool in Outbox(default_directory()).spools().items():
            found |= {one.run_id: f"waits for {destination}" for one in spool.waiting()}
            found |= {one.run_id: f"was refused by {destination}" for one in spool.dead()}
    except (OSError, SpoolError):
        # The outbox of another host cannot be read either.
        return found
    return found


def _config_verdict(task: SparkTask, *, has_policy: bool) -> tuple[Verdict, str] | None:
    """Return why a task has no lineage whatever it does; None where its runs decide."""
    if not task.has_lineage:
        return _without_lineage(task, has_policy=has_policy)
    given = task.fields.get("lineage_enabled")
    for value, place in ((given, "its DAG file"), (option("lineage_enabled"), "[spark_lineage]")):
        if value not in (None, ""):
            if TaskSettings({"lineage_enabled": value}, "").is_off():
                return "none", f"lineage_enabled is off in {place}"
            break
    key = "_selective_enable_ol_task"
    params = {name: one.get("default") for name, one in dict(task.fields.get("params") or ()).items() if name == key}
    operator = type(task.type, (SimpleNamespace,), {"__module__": task.module})(params=params)
    if not emission(operator, task.dag_id, task.task_id).is_sent:
        return "none", "the configuration of the OpenLineage provider silences the task ([openlineage])"
    return None


def _without_lineage(task: SparkTask, *, has_policy: bool) -> tuple[Verdict, str]:
    kind = next(((name, conn_id) for module, name, conn_id in _KINDS if task.stock == f"{module}.{name}"), None)
    if not task.stock:
        return "none", "no adapter for its operator; spark-lineage merge reads an event log that it leaves"
    if kind is None:
        return "none", "give it lineage in its DAG file: with_lineage(task), of spark_lineage.policy"
    dag = SimpleNamespace(tags=task.dag.get("tags"), default_args=task.dag.get("default_args"))
    known = SimpleNamespace(dag_id=task.dag_id, dag=dag, pool=task.fields.get("pool", "default_pool"))
    vars(known).update({name: task.fields[name] for name in _CONNECTIONS if task.fields.get(name)})
    try:
        is_wanted = _is_wanted(known, Kind(None, None, kind[1]))
    except Exception as error:
        return "none", f"policy_rules cannot be read, so that they leave all tasks as they are: {error}"
    if not is_wanted:
        return "none", "policy_rules exclude it"
    if not has_policy:
        return "none", f"a stock operator, and no policy: take Lineage{kind[0]}, or import task_policy for all tasks"
    or_rule = ", or policy_rules exclude its connection" if "conn:" in (option("policy_rules") or "") else ""
    return "none", (
        "the policy left it: its class or the task has lineage_enabled = False, or an attribute whose name the policy "
        f"needs{or_rule}; the log of the DAG processor says which"
    )


def _runs_verdict(task: SparkTask, runs: _Runs, undelivered: Mapping[str, str]) -> tuple[Verdict, str]:
    views = list(runs.views)
    if not views:
        state = f"it is {runs.open_state}" if runs.open_state else "it has not run"
        return "unknown", f"{state} in the last {RUNS} runs of its DAG{', which is paused' if task.is_paused else ''}"
    if not any(views):
        return "unknown", f"its last run {_NO_XCOM}"
    # What is older than the first lineage ran before the task had any.
    while views[-1] is None:
        views.pop()
    left = [view for view in views if view is not None and not view["why"]]
    whys = [view["why"] for view in views if view is not None and view["why"]]
    if not left:
        return "none", whys[0]
    if last := next(filter(None, (undelivered.get(view["run_id"]) for view in left)), ""):
        verdict: Verdict = "none" if "refused" in last else "unknown"
        return verdict, f"an event of its last runs {last}: see spark-lineage outbox list on this host"
    counts: Counter[str] = sum((view["counts"] for view in left), Counter())
    parts = [f"{name} ({count})" for name, count in counts.most_common(_NAMED)]
    if more := len(counts) - len(parts):
        parts.append(f"{more} more")
    if missing := len(views) - len(left):
        parts.append(f"{missing} of {len(views)} ends left no lineage{f': {whys[0]}' if whys else ''}")
    return ("counted", ", ".join(parts)) if parts else ("whole", "")
