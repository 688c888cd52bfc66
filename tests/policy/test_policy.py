"""The policy on a folder of DAGs: what has lineage by it, what the rules exclude, and that nothing stays of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow_home import IS_AIRFLOW_2
from policy import LINE, write_dags

if TYPE_CHECKING:
    from laboratory import Bench
    from warm_python import WarmPython

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "events"
HAVE = {"stock", "own", "own_mapped", "mapped", "mixed", "mixed_mapped", "group.grouped", "group.jdbc", "sql"}
HAVE |= {"sql_mapped"}
KINDS = {
    "own": "Own",
    "own_mapped": "Own",
    "mixed": "Mixed",
    "mixed_mapped": "Mixed",
    "group.jdbc": "SparkJDBCOperator",
    "sql": "SparkSqlOperator",
    "sql_mapped": "SparkSqlOperator",
}
REFUSE = {"refusing", "deferring"}
LINKS = ["Spark UI", "Spark history", "Cluster manager", "Driver log", "Lineage"]
PROGRAM = """
import json, os, pickle, sys
from spark_lineage import policy
try:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization as Serialization
except ImportError:
    from airflow.models.dagbag import DagBag
    from airflow.serialization.serialized_objects import SerializedDAG as Serialization
def parsed(folder):
    bag = DagBag(folder)
    assert not bag.import_errors, bag.import_errors
    return {task: {} for dag in bag.dags.values() for task in dag.task_ids}, bag.dags.values()

def seen(folder):
    tasks, dags = parsed(folder)
    for dag in dags:
        see(dag, tasks)
    return tasks

def see(dag, tasks):
    stored = Serialization.from_dict(json.loads(json.dumps(Serialization.to_dict(dag))))
    for task in dag.tasks:
        mapped = {"application": "b.py"}
        inputs = {"own_mapped": {"table": "u"}, "mapped": mapped, "mixed_mapped": mapped}.get(task.task_id)
        inputs = {"sql": "SELECT 2"} if task.task_id == "sql_mapped" else inputs
        inputs = {"template_spec": {}} if task.task_id in {"spread", "given"} else inputs
        made = task if inputs is None else task.unmap(inputs)
        seen = stored.get_task(task.task_id)
        pickled = pickle.loads(pickle.dumps(dag)).get_task(task.task_id)
        kind = getattr(pickled, "operator_class", type(pickled))
        tasks[task.task_id][dag.dag_id] = {
            "bases": [one.__name__ for one in type(made).__mro__],
            "type": [task.task_type, type(made).__name__, seen.task_type],
            "by": getattr(made, "lineage_by", None),
            "settled": getattr(made, "deferrable", None),
            "table": getattr(made, "table", None),
            "fields": list(seen.template_fields),
            "links": [link.name for link in seen.operator_extra_links],
            # What a PythonVirtualenvOperator gets with the DAG; this package may be missing there.
            "pickled": [kind.__name__, getattr(kind, "lineage_by", None)],
            "upstream": sorted(task.upstream_task_ids),
        }

folder, *rules = sys.argv[1:]
found = {"tasks": seen(folder), "by_rules": {}, "modules": [one for one in sys.modules if "spark_lineage" in one]}
for one in rules:
    os.environ["AIRFLOW__SPARK_LINEAGE__POLICY_RULES"] = one
    # Each process reads them once.
    policy._rules.cache_clear()
    found["by_rules"][one] = {"tasks": seen(folder)}
print(json.dumps(found))
"""
Parse = Callable[..., dict[str, Any]]


@pytest.fixture
def parse(tmp_path: Path, warm_python: WarmPython) -> Parse:
    """Parse a folder of DAGs in an Airflow of its own, with the line in ``airflow_local_settings.py`` or another."""

    def run(count: int, *rules: str, line: str = LINE, more: str = "") -> dict[str, Any]:
        folder = tmp_path / "dags"
        write_dags(folder, count)
        if more:
            (folder / "more.py").write_text(more)
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "airflow_local_settings.py").write_text(line)
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE"))}
        roots = [str(ROOT / root) for root in ("provider", "operators", "listeners")]
        clean |= {"AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(roots)}
        settings = {"AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING"}
        done = warm_python.run("-c", PROGRAM, folder, *rules, env=clean | settings)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found | {"printed": done.stdout + done.stderr}

    return run


def having(found: Mapping[str, Any]) -> dict[str, set[int]]:
    """The numbers of the DAGs whose task has lineage, by task, for those that have it anywhere."""
    tasks = {
        task: {int(dag.rpartition("_")[2]) for dag, one in dags.items() if one["by"]}
        for task, dags in found["tasks"].items()
    }
    return {task: numbers for task, numbers in tasks.items() if numbers}


@pytest.mark.oldest
def test_all_tasks_of_fifty_dags_have_lineage(parse: Parse) -> None:
    found = parse(50)
    assert having(found) == {task: {*range(50)} for task in HAVE}
    for task in HAVE:
        for one in found["tasks"][task].values():
            kind = KINDS.get(task, "SparkSubmitOperator")
            assert one["type"] == [kind] * 3
            stock = kind if kind == "SparkSqlOperator" else "SparkSubmitOperator"
            # The user's own class, between ours and the stock one.
            expected = [kind, f"Lineage{stock}", "LineageOperator", *([kind] if kind != stock else []), stock]
            assert [base for base in one["bases"] if base != "Mixin"][: len(expected)] == expected
            assert one["pickled"] == [kind, None]
            # Queries never defer.
            settled = None if stock == "SparkSqlOperator" else False
            assert (one["by"], one["settled"]) == ("spark_lineage.policy", settled)
            # Airflow 3 looks for links by the names of classes, and does not know those of users.
            has_links = IS_AIRFLOW_2 or kind not in ("Own", "Mixed")
            assert one["links"] == (LINKS if has_links else [])
            program = "sql" if stock == "SparkSqlOperator" else "application"
            assert {program, "lineage_dir", "lineage_by"} <= set(one["fields"])
    mapped = found["tasks"]["own_mapped"]["orders_0"]
    assert ("table" in mapped["fields"], mapped["table"], mapped["upstream"]) == (True, "u", ["own"])
    for task in REFUSE:
        assert not any(one["links"] or one["by"] for one in found["tasks"][task].values())


@pytest.mark.oldest
def test_without_the_line_all_is_as_before(parse: Parse) -> None:
    found = parse(2, line="")
    assert having(found) == {}
    assert not any(one["links"] for dags in found["tasks"].values() for one in dags.values())
    assert "spark_lineage.operators.lineage_spark_submit" not in found["modules"]


def test_rules(parse: Parse) -> None:
    some = {"stock", "own_mapped", "mixed", "mixed_mapped", "group.grouped", "group.jdbc"}
    expected: dict[str, dict[str, set[int]]] = {
        "tag:fin*": {task: {1, 3, 5} for task in HAVE},
        "dag:orders_[01];dag:orders_4": {task: {0, 1, 4} for task in HAVE},
        "!tag:finance": {task: {0, 2, 4} for task in HAVE},
        "pool:spark": {"stock": {1, 2, 3, 4}, "own_mapped": {*range(6)}},
        "conn:spark_3;conn:spark_mapped": {"own": {3}, "mapped": {*range(6)}},
        "conn:spark_default;!dag:orders_[1-5]": {task: {0} for task in some},
    }
    found = parse(6, *expected)
    assert {rules: having(each) for rules, each in found["by_rules"].items()} == expected


def test_trouble_leaves_the_task_as_it_is(parse: Parse) -> None:
    found = parse(1, "finance")
    assert having(found["by_rules"]["finance"]) == {}
    assert "The task stock is left without lineage" in found["printed"]
    assert "give a pattern after dag:, tag:, pool: or conn:" in found["printed"]


def test_what_is_ours_or_refuses_stays_as_it_is(parse: Parse) -> None:
    more = """
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import DAG
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

class Links(SparkSubmitOperator):
    @property
    def operator_extra_links(self):
        return ()

class Facets(SparkSubmitOperator):
    def get_openlineage_facets_on_complete(self, task_instance):
        return None

with DAG("more_0", schedule=None):
    LineageSparkSubmitOperator(task_id="ours", application="a.py", deferrable=True)
    Facets(task_id="facets", application="a.py")
    Links(task_id="links", application="a.py")
    task = SparkSubmitOperator(task_id="object", application="a.py")
    task.lineage_enabled = False
"""
    found = parse(1, more=more)
    assert having(found) == {task: {0} for task in HAVE}
    (ours,) = found["tasks"]["ours"].values()
    assert (ours["by"], ours["settled"], len(ours["links"])) == (None, True, 5)
    assert "The task links is left without lineage" in found["printed"]


@pytest.mark.parametrize("operator", ["own_operators:Own", "airflow.providers.apache.spark.operators.spark_submit:"])
def test_a_task_runs_in_a_session(bench: Bench, operator: str) -> None:
    bench.is_by_policy, bench.operator = True, operator if operator[-1] != ":" else f"{operator}SparkSubmitOperator"
    outcome = bench.run(lineage=[FIXTURES / "a_414.ndjson"])
    assert outcome.error is None, outcome.printed
    assert len(outcome.names("outputs")) > 0
    assert ("noted begins" in outcome.printed) == ("Own.execute ends" in outcome.printed) == ("Own" in operator)
    assert outcome.last["returned"] == ("own" if "Own" in operator else None)


def test_jobs_that_a_subclass_submits_are_one(bench: Bench) -> None:
    bench.is_by_policy, bench.operator = True, "own_operators:Twice"
    outcome = bench.run(lineage=[FIXTURES / "a_414.ndjson"])
    assert outcome.error is None, outcome.printed
    assert sorted(outcome.names("outputs")) == ["/data/lab/out/a_parquet", "/data/lab/out/d_rdd"]
    assert outcome.printed.count("Delivery:") == 1
    first, second = outcome.told
    assert first["conf"]["spark.openlineage.applicationRunId"] not in " ".join(second["argv"]), "of a removed directory"
    assert second["conf"].keys() - first["conf"].keys() == {"spark.users.second"}


def test_a_kill_reaches_the_method_of_the_user(bench: Bench) -> None:
    bench.is_by_policy, bench.operator = True, "own_operators:Own"
    outcome = bench.run(lineage=[FIXTURES / "gkillmid_414.ndjson"], signal_parent=10)
    assert "Own.on_kill" in outcome.printed
    assert outcome.error is not None


def test_an_operator_that_runs_nothing_of_the_stock_one_succeeds(bench: Bench) -> None:
    bench.is_by_policy, bench.operator = True, "own_operators:Deaf"
    outcome = bench.run()
    assert (outcome.error, outcome.told) == (None, []), outcome.printed
    assert "it has run nothing by the hook of its operator" in outcome.printed


def test_a_jdbc_job_has_lineage(bench: Bench) -> None:
    bench.is_by_policy = True
    bench.operator = "airflow.providers.apache.spark.operators.spark_jdbc:SparkJDBCOperator"
    bench.application = {"cmd_type": "jdbc_to_spark", "jdbc_table": "t", "metastore_table": "t", "jdbc_driver": "d.D"}
    bench.env["AIRFLOW_CONN_JDBC_DEFAULT"] = json.dumps({"conn_type": "jdbc", "host": "h", "schema": "s", "port": 1})
    outcome = bench.run(lineage=[FIXTURES / "a_414.ndjson"], jdbc_conn_id="jdbc_default")
    assert outcome.error is None, outcome.printed
    assert len(outcome.names("outputs")) > 0
    assert "-cmdType" in outcome.command["argv"]


def test_an_operator_that_defers_itself_has_one_end(bench: Bench) -> None:
    bench.is_by_policy, bench.operator = True, "own_operators:Patient"
    outcome = bench.run(lineage=[FIXTURES / "a_414.ndjson"])
    assert outcome.error is None, outcome.printed
    assert len(outcome.names("outputs")) > 0
    assert outcome.printed.count("Delivery:") == 1


def test_functions_with_a_spark_session_have_lineage(parse: Parse) -> None:
    pytest.importorskip("airflow.providers.apache.spark.operators.spark_pyspark")
    more = (
        "from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator\n"
        "from airflow.sdk import DAG, task\n"
        "def count(spark):\n"
        "    return 1\n"
        "with DAG('functions'):\n"
        "    PySparkOperator(task_id='plain', python_callable=count)\n"
        "    task.pyspark(task_id='decorated')(count)()\n"
    )
    found = parse(1, more=more)

    for task, kind in (("plain", "PySparkOperator"), ("decorated", "_PySparkDecoratedOperator")):
        one = found["tasks"][task]["functions"]
        assert one["by"] == "spark_lineage.policy"
        assert one["bases"][:3] == [kind, "LineagePySparkOperator", "LineageOperator"]
        assert {"op_kwargs", "lineage_dir", "lineage_by"} <= set(one["fields"])
        assert "Lineage" in one["links"]


def test_applications_on_kubernetes_have_lineage_by_their_connection(parse: Parse) -> None:
    more = (
        "from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator\n"
        "from airflow.sdk import DAG\n"
        "from spark_lineage.policy import with_lineage\n"
        "class Own(SparkKubernetesOperator):\n"
        "    def trigger_reentry(self, context, event):\n"
        "        return super().trigger_reentry(context, event)\n"
        "with DAG('cluster'):\n"
        "    SparkKubernetesOperator(task_id='wanted', kubernetes_conn_id='spark_one', template_spec={})\n"
        "    Own(task_id='own', kubernetes_conn_id='spark_one', template_spec={})\n"
        "    SparkKubernetesOperator.partial(task_id='spread').expand(template_spec=[{}])\n"
        "    with_lineage(SparkKubernetesOperator.partial(task_id='given').expand(template_spec=[{}]))\n"
    )
    found = parse(1, "conn:spark_*", "conn:kubernetes_default", more=more)

    def having(tasks: Any) -> set[str]:
        return {task for task, dags in tasks.items() if dags.get("cluster", {}).get("by")}

    assert having(found["tasks"]) == {"wanted", "own", "spread", "given"}
    assert having(found["by_rules"]["conn:spark_*"]["tasks"]) == {"wanted", "own", "given"}
    assert having(found["by_rules"]["conn:kubernetes_default"]["tasks"]) == {"spread", "given"}
    own = found["tasks"]["own"]["cluster"]
    assert own["bases"][:3] == ["Own", "LineageSparkKubernetesOperator", "LineageOperator"]
    assert {"template_spec", "lineage_dir", "lineage_by"} <= set(own["fields"])


def test_one_task_has_lineage_without_the_policy(parse: Parse) -> None:
    more = (
        "from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator\n"
        "from airflow.providers.standard.operators.empty import EmptyOperator\n"
        "from airflow.sdk import DAG\n"
        "from spark_lineage.policy import with_lineage\n"
        "with DAG('some'):\n"
        "    with_lineage(SparkSqlOperator(task_id='one', sql='SELECT 1'))\n"
        "    with_lineage(SparkSqlOperator.partial(task_id='sql_mapped').expand(sql=['SELECT 1', 'SELECT 2']))\n"
        "    with_lineage(EmptyOperator(task_id='no_spark'))\n"
        "    SparkSqlOperator(task_id='other', sql='SELECT 1')\n"
    )
    found = parse(1, "!dag:*", line="", more=more)

    for tasks in (found["tasks"], found["by_rules"]["!dag:*"]["tasks"]):
        having = {task for task, dags in tasks.items() if dags.get("some", {}).get("by")}
        assert having == {"one", "sql_mapped"}
    assert "no_spark is left without lineage: nothing is known of the lineage of EmptyOperator" in found["printed"]
