"""What a job with properties alone is given, which no spark-submit of this machine submits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spark_lineage.adapters.adapter import OperatorAdapter
from spark_lineage.inject.preparation import PreparedArguments
from spark_lineage.inject.properties import SubmitArguments


def added(users: dict[str, str], **prepared: Any) -> dict[str, str]:
    adapter: Any = SimpleNamespace(arguments=SubmitArguments(users))
    return OperatorAdapter.added(adapter, PreparedArguments(SubmitArguments(**prepared), None, "cluster", users))


def test_jar_of_the_listener_comes_with_the_listener() -> None:
    listener = {"spark.extraListeners": "io.openlineage.Listener"}
    assert added({}, conf=listener, jars="/a.jar") == {**listener, "spark.jars": "/a.jar"}
    assert added({}, conf={}, packages="g:a:1") == {"spark.jars.packages": "g:a:1"}
    assert added({}, conf={}, driver_class_path="/a.jar") == {"spark.driver.extraClassPath": "/a.jar"}


def test_property_that_the_user_set_so_is_not_added() -> None:
    users = {"spark.jars": "/own.jar", "spark.app.name": "own"}
    assert added(users, conf={**users, "spark.x": ""}, jars="/own.jar") == {"spark.x": ""}
    assert added(users, conf=users, jars="/own.jar,/a.jar") == {"spark.jars": "/own.jar,/a.jar"}
