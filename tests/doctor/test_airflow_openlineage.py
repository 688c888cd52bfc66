"""What Airflow's OpenLineage provider is told, and what that does to the events of tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from airflow.providers.openlineage import conf

from spark_lineage.deliver.connections import BY_CONNECTION
from spark_lineage.doctor.backends import check_airflow_openlineage, check_airflow_transport, check_same_backend
from spark_lineage.doctor.settings import check_settings

OPERATOR = "spark_lineage.operators.lineage_spark_submit.LineageSparkSubmitOperator"
HTTP = '{"type": "http", "url": "http://127.0.0.1:9"}'
WITH_KEY = HTTP.replace("}", ', "auth": {"type": "api_key", "apiKey": "hunter2"}}')


@pytest.fixture
def openlineage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Set options of ``[openlineage]``, which the provider reads once a process."""

    def forget() -> None:
        for function in vars(conf).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()

    def configure(**options: str) -> None:
        for name, value in options.items():
            monkeypatch.setenv(f"AIRFLOW__OPENLINEAGE__{name.upper()}", value)
        forget()

    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_DISABLED", "AIRFLOW__OPENLINEAGE__TRANSPORT"):
        monkeypatch.delenv(name, raising=False)
    forget()
    yield configure
    monkeypatch.undo()
    forget()


def told(findings: Any) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings]


def test_a_provider_that_sends_nothing(setup: Any, openlineage: Any) -> None:
    alone = setup()
    for options, words in (
        ({}, "or it has no transport"),
        ({"disabled": "True", "transport": HTTP}, "[openlineage] disabled or OPENLINEAGE_DISABLED is set"),
    ):
        openlineage(**options)
        ((level, text),) = told(check_airflow_openlineage(alone))
        assert (level, words in text) == ("problem", True)
        assert [one.remedy.count("spark-lineage init") for one in check_airflow_openlineage(alone)] == [1]
        # With connections of their own, tasks need no provider.
        assert [level for level, _ in told(check_airflow_openlineage(replace(alone, conn_ids=("marquez",))))] == ["ok"]
        assert told(check_airflow_transport(alone)) == []


@pytest.mark.parametrize(
    ("options", "level", "words"),
    [
        ({"transport": "{no json"}, "problem", "cannot be read"),
        ({"transport": '{"type": "async_http", "url": "http://h"}'}, "problem", "loses the events of tasks"),
        (
            {
                "transport": json.dumps(
                    {"type": "composite", "transports": {"a": {"type": "async_http", "url": "http://h"}}}
                )
            },
            "problem",
            "loses the events of tasks",
        ),
        ({"transport": HTTP, "disabled_for_operators": f"a.B;{OPERATOR}"}, "problem", "disabled_for_operators"),
        ({"transport": HTTP, "selective_enable": "True"}, "warning", "selective_enable"),
        ({"transport": HTTP, "spark_inject_transport_info": "True"}, "warning", "beside that of the task"),
        ({"transport": WITH_KEY, "spark_inject_transport_info": "True"}, "warning", "the key of the transport stands"),
        (
            {
                "transport": HTTP.replace("}", ', "custom_headers": {"X-Api-Key": "hunter2"}}'),
                "spark_inject_transport_info": "True",
            },
            "warning",
            "the key of the transport stands",
        ),
        ({"transport": HTTP, "execution_timeout": "3"}, "warning", "execution_timeout is 3 s"),
        ({"transport": HTTP.replace("}", ', "timeout": 30}')}, "warning", "may take 30 s"),
    ],
)
def test_what_gets_in_the_way(setup: Any, openlineage: Any, options: Any, level: str, words: str) -> None:
    openlineage(**options)
    found = [finding for finding in check_airflow_openlineage(setup()) if finding.level != "ok"]
    assert [(one.level, words in one.text, bool(one.remedy)) for one in found] == [(level, True, True)]


def test_what_does_not(setup: Any, openlineage: Any) -> None:
    openlineage(
        transport='{"type": "async_http", "url": "http://h"}',
        execute_in_thread="True",
    )
    assert [level for level, _ in told(check_airflow_openlineage(setup()))] == ["ok"]


def test_the_transport_is_asked(setup: Any, openlineage: Any, server: Any) -> None:
    url = server({"*": (422, {})})
    openlineage(transport=json.dumps({"type": "http", "url": url}))
    found = list(check_airflow_transport(setup()))
    assert [one.level for one in found] == ["ok", "warning"]
    assert "spark-lineage init" in found[1].remedy

    wrong = {"type": "http", "url": server({"*": (401, {})}), "auth": {"type": "api_key", "apiKey": "hunter2-key"}}
    openlineage(transport=json.dumps(wrong))
    (level, text), _ = told(check_airflow_transport(setup()))
    assert (level, "401" in text, "hunter2" in text) == ("problem", True, False)


def test_one_backend_under_two_names(setup: Any, openlineage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    openlineage(transport='{"type": "http", "url": "http://Marquez:5000/", "auth": {"type": "api_key", "apiKey": "k"}}')
    kafka = {"kind": "kafka", "topic": "t"}
    for name, host, extra in (
        ("marquez", "http://marquez:5000", {}),
        ("elsewhere", "http://marquez:5001", {}),
        ("brokers", "a:9092,b:9092", kafka),
        ("one_broker", "b", kafka),
        ("other_topic", "b", {**kafka, "topic": "u"}),
    ):
        connection = {"conn_type": "openlineage", "host": host, "extra": extra}
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
    several = replace(setup(), conn_ids=("marquez", "elsewhere", "brokers", "one_broker", "other_topic", "gone"))
    first, second = told(check_same_backend(several))
    assert first[1].startswith("the connection marquez and [openlineage] transport of Airflow lead to the same backend")
    assert second[1].startswith("the connection brokers and the connection one_broker lead to the same backend")
    assert {first[0], second[0]} == {"warning"}


def test_a_connection_that_is_the_transport_is_no_second_way(
    setup: Any, openlineage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    openlineage(transport=json.dumps({"type": BY_CONNECTION, "conn_id": "marquez"}))
    connection = {"conn_type": "openlineage", "host": "http://marquez:5000"}
    for name in ("marquez", "marquez_again"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
    assert told(check_same_backend(replace(setup(), conn_ids=("marquez",)))) == []
    ((level, text),) = told(check_same_backend(replace(setup(), conn_ids=("marquez_again",))))
    assert (level, text.startswith("the connection marquez_again and [openlineage] transport")) == ("warning", True)


def test_transport_that_names_a_connection_gives_drivers_nothing(
    setup: Any, openlineage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "openlineage", "host": "http://marquez:5000", "password": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_MARQUEZ", json.dumps(connection))
    transport = json.dumps({"type": BY_CONNECTION, "conn_id": "marquez"})
    openlineage(transport=transport, spark_inject_transport_info="True")
    assert [level for level, _ in told(check_airflow_openlineage(setup()))] == ["ok"]


def test_error_of_the_connection_that_the_transport_names_is_not_one_of_the_transport(
    setup: Any, openlineage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MARQUEZ", json.dumps({"conn_type": "http", "host": "http://marquez:5000"}))
    openlineage(transport=json.dumps({"type": BY_CONNECTION, "conn_id": "marquez"}))
    (found,) = check_airflow_openlineage(setup())
    assert (found.level, found.remedy) == ("problem", "correct the transport, or the connection that it names")


def test_a_command_of_the_section_stops_all_settings(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__LINEAGE_DIR_CMD", "echo /tmp")
    ((level, text),) = told(check_settings(setup()))
    assert (level, "LINEAGE_DIR_CMD" in text) == ("problem", True)
