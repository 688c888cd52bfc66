"""Which hosts are which cluster."""

from __future__ import annotations

import re

import pytest

from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.options import HostPatterns

PROD = ("prod", re.compile(r"10\.1\..*"))
DEV = ("dev", re.compile(r"10\.2\.\d+\.\d+|dev-kafka"))


def namespace(given: str, *patterns: tuple[str, re.Pattern[str]], default: str = "") -> str:
    once = HostPatterns(patterns, default).resolve(DatasetName(given, "t"))
    assert HostPatterns(reversed(patterns), default).resolve(once) == once
    assert once.name == "t"
    return once.namespace


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("kafka://10.1.2.3:9092,10.1.2.4:9092", "kafka://prod"),
        ("kafka://10.1.2.3:9092", "kafka://prod"),
        ("kafka://10.2.2.3:9092", "kafka://dev"),
        ("postgres://dev-kafka:5432", "postgres://dev"),
        ("hdfs://10.1.0.1:8020", "hdfs://prod"),
        ("hdfs://10.1.0.1:8020/warehouse", "hdfs://prod/warehouse"),
        ("sqlserver://10.1.0.1/Main", "sqlserver://prod/Main"),
        # Only part of the host, or another one: it stays.
        ("kafka://110.1.2.3:9092", "kafka://110.1.2.3:9092"),
        ("kafka://dev-kafka-2:9092", "kafka://dev-kafka-2:9092"),
        ("kafka://other:9092,10.1.2.3:9092", "kafka://other:9092,prod"),
        ("kafka://prod:9092", "kafka://prod"),
        # No hosts in there, or no hosts that we can tell.
        ("kafka://", "kafka://"),
        ("file://,", "file://,"),
        ("kafka://10.1.2.3:a", "kafka://10.1.2.3:a"),
        ("s3://10.1.2.3", "s3://10.1.2.3"),
        ("viewfs://10.1.2.3", "viewfs://10.1.2.3"),
        ("file:/10.1.2.3", "file:/10.1.2.3"),
        ("elsewhere://10.1.2.3", "elsewhere://10.1.2.3"),
    ],
)
def test_hosts_that_match_whole_become_the_cluster(given: str, expected: str) -> None:
    assert namespace(given, PROD, DEV) == expected


def test_a_pattern_may_name_the_port_to_tell_servers_of_one_host_apart() -> None:
    billing = ("billing", re.compile(r"db:5433"))
    assert namespace("postgres://db:5433", billing) == "postgres://billing"
    assert namespace("postgres://db:5432", billing) == "postgres://db:5432"


def test_hosts_that_match_nothing_get_the_default() -> None:
    assert namespace("kafka://x:9092,y:9092", PROD, default="onprem") == "kafka://onprem"
    assert namespace("kafka://10.1.1.1:9092", PROD, default="onprem") == "kafka://prod"
    assert namespace("s3://x", PROD, default="onprem") == "s3://x"


def test_of_several_patterns_the_first_by_name_wins_and_default_is_last() -> None:
    everything = re.compile(".*")
    assert namespace("kafka://10.1.1.1", PROD, ("beta", everything)) == "kafka://beta"
    assert namespace("kafka://10.1.1.1", PROD, ("default", everything)) == "kafka://prod"
    assert namespace("kafka://x", PROD, ("default", everything)) == "kafka://default"


def test_a_cluster_is_not_matched_again() -> None:
    assert namespace("kafka://10.1.1.1", PROD, ("all", re.compile("p.*"))) == "kafka://prod"
