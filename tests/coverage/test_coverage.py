"""``spark-lineage coverage`` in a real Airflow: DAG files that it has parsed, and runs in its database."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.coverage.spark_tasks import runs_spark

if TYPE_CHECKING:
    from warm_python import WarmPython

pytestmark = pytest.mark.airflow

GAPS = {
    "gaps.emr": ("none", "the policy left it"),
    "gaps.glue": ("none", "no adapter"),
    "gaps.dataproc": ("none", "the policy left it"),
    "gaps.bash": ("none", ""),
    "gaps.pod": ("none", "no adapter"),
    "gaps.off": ("none", "lineage_enabled is off in its DAG file"),
    "gaps.bash_kwargs": ("none", "with_lineage(task)"),
    "gaps.refusing": ("none", "the policy left it"),
    "gaps.clashing": ("none", "the policy left it"),
    "gaps.silenced": ("none", "OpenLineage provider silences"),
    "gaps.unread": ("none", "no event log of it in /shared/spark-events"),
    "gaps.log_off": ("none", "no event log was to be read"),
    "gaps.never_ran": ("unknown", "it has not run"),
    "gaps.counting": ("counted", "execute_update_command (6), CoolVendorJoinIndex (3)"),
    "gaps.left_nothing": ("unknown", "left no lineage in Airflow's database"),
    "gaps.undelivered": ("none", "was refused by marquez"),
    "gaps.mapped": ("counted", "1 of 6 ends left no lineage"),
    "sandbox_of_ann.excluded": ("none", "policy_rules exclude it"),
    "paused.waiting": ("unknown", "which is paused"),
}
# Without the policy, beside those of operators with lineage.
STOCK = {"SparkSubmitOperator", "SparkSqlOperator", "SparkJDBCOperator", "Ours", "@task.pyspark"}
COUNTED = """
from sqlalchemy import event
from airflow import settings
from spark_lineage.coverage.tasks_coverage import coverage
import time
statements = []
event.listen(settings.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
began = time.monotonic()
rows = coverage()
selects = [one for one in statements if one.startswith("SELECT")]
print(len(rows), len(selects), len(statements), time.monotonic() - began)
"""
ASKED = """
from types import SimpleNamespace
from starlette.testclient import TestClient
from airflow.api_fastapi.app import create_app
from airflow.api_fastapi.core_api.security import get_user
from spark_lineage.coverage import page
from spark_lineage.view import app
create_app("core")
client = TestClient(page._app)
print(client.get("/tasks").status_code, client.get("/coverage.js").status_code)
page._app.dependency_overrides[get_user] = lambda: "ann"
app.get_auth_manager = lambda: SimpleNamespace(
    get_authorized_dag_ids=lambda *, user, method: {"gaps", "shop_1", "paused"},
    is_authorized_dag=lambda *, method, access_entity, details, user: details.id != "shop_1",
)
print(*sorted({one["dag_id"] for one in client.get("/tasks").json()["tasks"]}))
"""


def coverage(python: WarmPython, env: dict[str, str], *arguments: str) -> Any:
    done = python.run("-m", "spark_lineage.cli", "coverage", "--json", *arguments, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def measured(python: WarmPython, env: dict[str, str]) -> tuple[int, int, float]:
    done = python.run("-c", COUNTED, env=env)
    assert done.returncode == 0, done.stderr
    rows, selects, statements, seconds = done.stdout.split()[-4:]
    assert selects == statements, "it only reads"
    return int(rows), int(selects), float(seconds)


def test_planted_gaps_are_found_and_none_invented(planted: dict[str, str], warm_python: WarmPython) -> None:
    found = {f"{one['dag_id']}.{one['task_id']}": one for one in coverage(warm_python, planted)["tasks"]}
    lacking = {name: (one["verdict"], one["why"]) for name, one in found.items() if one["verdict"] != "whole"}
    assert lacking.keys() == GAPS.keys()
    for name, (verdict, why) in GAPS.items():
        assert lacking[name][0] == verdict, (name, lacking[name])
        assert why in lacking[name][1], (name, lacking[name])
    whole = found.keys() - lacking.keys()
    loads = {
        f"shop_{number}.{name}" for number in range(10) for name in (*(f"load_{at}" for at in range(8)), "sql", "jdbc")
    }
    assert whole == loads | {"decorated.pyspark"}
    assert {found[name]["runs"] for name in whole} == {3}


def test_filter_and_totals(planted: dict[str, str], warm_python: WarmPython) -> None:
    found = coverage(warm_python, planted, "--verdict", "counted")
    assert [one["task_id"] for one in found["tasks"]] == ["counting", "mapped"]
    assert found["totals"]["SparkSubmitOperator"] == {"whole": 30, "counted": 2, "none": 4, "unknown": 3}
    done = warm_python.run("-m", "spark_lineage.cli", "coverage", "--verdict", "counted", env=planted)
    assert done.stdout.splitlines()[1].split("\t")[:3] == ["SparkSubmitOperator", "gaps.mapped", "counted"]
    assert "SparkSubmitOperator: 30 whole, 2 counted, 4 none, 3 unknown" in done.stderr


def test_without_a_policy_stock_operators_have_none(
    installation: Callable[..., dict[str, str]], warm_python: WarmPython
) -> None:
    env = installation("")
    found = coverage(warm_python, env)["tasks"]
    stock = [one for one in found if one["operator"] in STOCK]
    assert len(stock) == 90
    assert {one["verdict"] for one in stock} == {"none"}
    assert all("a stock operator, and no policy" in one["why"] for one in stock)
    ours = [one["why"] for one in found if one["operator"] == "LineageSparkSubmitOperator" and one["task_id"] != "off"]
    assert set(ours) == {"it has not run in the last 3 runs of its DAG, which is paused"}


def test_queries_do_not_grow_with_tasks(
    planted: dict[str, str], installation: Callable[..., dict[str, str]], warm_python: WarmPython
) -> None:
    rows, queries, _ = measured(warm_python, planted)
    many, more, seconds = measured(
        warm_python, installation("from spark_lineage.policy import task_policy", COVERAGE_DAGS="100")
    )
    assert many == rows + 10_000
    assert more == queries == 2
    assert seconds < 30, f"{seconds} s"


def test_rows_are_those_that_a_user_may_read(planted: dict[str, str], warm_python: WarmPython) -> None:
    env = planted | {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False"}
    done = warm_python.run("-c", ASKED, env=env)
    assert done.returncode == 0, done.stderr
    # Airflow's log may be in between.
    assert {"401 200", "gaps paused"} <= set(done.stdout.splitlines())


def test_database_that_is_not_there_is_refused(
    planted: dict[str, str], warm_python: WarmPython, tmp_path: object
) -> None:
    env = planted | {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{tmp_path}/none.db"}
    done = warm_python.run("-m", "spark_lineage.cli", "coverage", env=env)
    assert done.returncode == 2
    assert "Airflow's database cannot be read: OperationalError" in done.stderr
    assert "SELECT" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "spark-submit load.py",
        "cd jobs && spark-submit \\\n  --master yarn load.py",
        "set -e\nexec /opt/spark/bin/spark-submit load.py",
        "export A=1; A=2 B='3' $SPARK_HOME/bin/spark-sql -f daily.sql",
        'bash -c "spark-submit load.py"',
        "ssh edge 'spark-submit load.py'",
        "kubectl exec driver -- spark-submit load.py",
        "echo begin && spark-submit load.py || exit 1",
        "RUN=$(spark-submit load.py)",
        'sudo -u spark "${SPARK_HOME}/bin/spark-submit" load.py',
        "if true; then spark-submit load.py; fi",
        "spark3-submit load.py",
        "export RUN=$(spark-submit load.py)",
        "spark-class org.apache.spark.deploy.SparkSubmit load.py",
        "spark-submit --master yarn load.py --version 3",
        "find jobs -name '*.py' -exec spark-submit {} \\;",
        "spark-pipelines run --spec shop.yml",
        "cd jobs; /opt/venv/bin/python3 -m pyspark.pipelines.cli run --spec shop.yml",
        "pyspark < load.py",
        "SPARK_HOME=/opt/spark $SPARK_HOME/bin/pyspark --master yarn <<EOF",
        "cat load.py | pyspark --master yarn",
        'bash -c "pyspark --name load < load.py"',
        "bash <<EOF\nset -e\nspark-submit load.py\nEOF",
        "ssh -T edge /bin/bash -s <<-'EOF'\n\tspark-submit load.py\n\tEOF",
        "cat <<EOF | sudo -u spark sh\nspark-submit load.py\nEOF",
        "cat > /tmp/load.sh <<'EOF'\nspark-submit load.py\nEOF\nchmod +x /tmp/load.sh\n/tmp/load.sh",
        "tee load.sh <<EOF\nspark-submit load.py\nEOF\n. ./load.sh",
        "cat <<EOF > id\n$(spark-submit load.py)\nEOF",
        "cat <<EOF\nread me\nEOF\nspark-submit load.py",
        "cat > load.py <<EOF\nprint()\nEOF\nspark-submit load.py",
    ],
)
def test_command_that_runs_spark(command: str) -> None:
    assert runs_spark(command)


@pytest.mark.parametrize(
    "command",
    [
        "echo spark-submit load.py",
        "which spark-submit",
        "pgrep -f spark-submit",
        "sudo pkill -f spark-submit",
        "spark-submit --version",
        "spark-submit --kill driver-1 --master spark://m:6066",
        "true # spark-submit load.py",
        "cat /var/log/spark-submit.log",
        "pip install spark-submit",
        "[ -x /opt/spark/bin/spark-submit ] && true",
        "chmod +x spark-submit",
        "export RUN=spark-submit",
        "find / -name spark-submit",
        "spark-submit --master spark://m:6066 --kill driver-1",
        "python -m my_spark_submit",
        "python -m pip install pyspark",
        "uv add pyspark && python -c 'import pyspark'",
        "pyspark --version",
        "pip download pyspark < /dev/null",
        "python -m pyspark.pipelines.cli.py",
        "if ps aux | grep -q spark-submit; then exit 1; fi",
        "if ! pgrep spark-submit; then true; fi",
        "git commit -m 'mend the spark-submit'",
        "docker pull spark-submit",
        "kill $(pgrep -f spark-submit)",
        "mkdir -p /var/spark-submit",
        "cat <<EOF\nspark-submit load.py\nEOF",
        "cat > README <<'EOF'\nRun it by:\n  spark-submit load.py\nEOF\ncat README",
        "mail -s done ops@example.com <<-EOF\n\tspark-submit load.py\n\tEOF\ntrue",
        "cat > load.sh <<EOF\nspark-submit load.py\nEOF\nchmod +x load.sh && aws s3 cp load.sh s3://jobs/",
        "kubectl apply -f - <<EOF\nargs: [spark-submit, load.py]\nEOF",
        "cat <<'EOF'\n$(spark-submit load.py)\nEOF",
        "bash <<EOF\n# spark-submit load.py\necho spark-submit\nEOF",
        "python - <<EOF\nx = 1 << 2\nEOF",
    ],
)
def test_command_that_only_names_spark(command: str) -> None:
    assert not runs_spark(command)
