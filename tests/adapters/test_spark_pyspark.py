"""What an adapter of a function of Python makes of its operator, without Spark."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from spark_lineage.adapters.adapter import AdaptedTask
from spark_lineage.adapters.spark_connect import SparkConnectAdapter, with_session
from spark_lineage.adapters.spark_pyspark import PySparkAdapter
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.places import Places


class Guard:
    """A guard that keeps nothing."""

    def __call__(self, *_: Any, **__: Any) -> Guard:
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> bool:
        return True


def adapter(master: str = "local[1]", extra: dict[str, str] | None = None, **own: Any) -> PySparkAdapter:
    places = Places({}, extra or {}, has_connection=True, master=master)
    task = AdaptedTask(lambda: None, lambda: False, places, None, "", Guard())  # type: ignore[arg-type]
    fields: dict[str, Any] = {name: {} for name in ("config_kwargs", "op_kwargs")}
    fields |= {"execute_callable": lambda: None, "python_callable": print, **own}
    operator = SimpleNamespace(**fields)
    return PySparkAdapter.of(operator, operator, task)


@pytest.mark.parametrize(
    ("master", "extra", "own", "remote"),
    [
        ("sc://host:15002", {}, {}, "sc://host:15002"),
        ("sc://host:15002", {"spark.remote": "sc://other"}, {}, "sc://host:15002"),
        ("sc://host:15002", {}, {"spark.remote": "sc://other"}, "sc://other"),
        ("local[1]", {"spark.remote": "sc://other"}, {}, "sc://other"),
    ],
)
def test_server_is_the_one_that_the_operator_connects_to(master: str, extra: Any, own: Any, remote: str) -> None:
    adapted = adapter(master, extra, config_kwargs=own)
    assert isinstance(adapted, SparkConnectAdapter)
    assert adapted.remote == remote


def test_server_that_pyspark_starts_itself_is_a_driver_of_the_task() -> None:
    assert type(adapter(config_kwargs={"spark.remote": "local[2]"})) is PySparkAdapter


def test_session_of_a_url_that_ends_without_a_parameter_is_its_only_one() -> None:
    assert with_session("sc://host:15002/;", "1") == "sc://host:15002/;session_id=1"


def test_function_that_is_a_generator_stays_one() -> None:
    def function(spark: Any) -> Any:
        yield spark
        return "returned"

    adapted = adapter("sc://host")
    assert isinstance(adapted, SparkConnectAdapter)
    observed = adapted._observed(function)
    assert inspect.isgeneratorfunction(observed)
    running = observed(spark="session")
    assert next(running) == "session"
    with pytest.raises(StopIteration) as ended:
        next(running)
    assert ended.value.value == "returned"


def test_secret_that_the_function_puts_into_the_environment_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    def function() -> None:
        monkeypatch.setenv("SHOP_TOKEN", "OsEnvS3cr3t88")
        raise ValueError("refused OsEnvS3cr3t88")

    adapted = adapter(execute_callable=function)
    with pytest.raises(ValueError, match="refused"):
        adapted._run()
    assert redact(adapted.explain()) == "refused ***"


def test_secrets_that_the_function_gets_are_masked() -> None:
    adapter(op_kwargs={"token": "OpKwS3cr3t88", "spark": object()}).remember_secrets()
    assert redact("refused OpKwS3cr3t88") == "refused ***"
