"""Which ends of a path are not the dataset's: partitions, dates, globs, and a user's own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.naming.identity import BUILT_IN, DatasetName, PathPatterns

FOLDERS = st.one_of(
    st.sampled_from(["t", "ds=1", "a=b=c", "2024", "01", "15", "2024-01", "20240115", "202401", "2024-01-15T10:00Z"]),
    st.sampled_from(["*", "a*", "x[0-9]", "{a,b}", "part-00000.parquet", "000000_0", "a.csv", "=", "..b"]),
)


def resolved(path: str, namespace: str = "file", **patterns: re.Pattern[str]) -> str:
    return PathPatterns({**BUILT_IN, **patterns}).resolve(DatasetName(namespace, path)).name


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/t/ds=2024-01-01/hour=3", "/t"),
        ("/t/ds=2024-01-01", "/t"),
        ("/t/ds=", "/t"),
        ("/t/ds=__HIVE_DEFAULT_PARTITION__", "/t"),
        ("/a/b/t/country=de/city=Bad Ems", "/a/b/t"),
        ("/t/ds=1/part-0.parquet", "/t"),
        ("/t/ds=1/part-00000-1f2e.c000.snappy.parquet", "/t"),
        ("/t/ds=1/000000_0", "/t"),
        ("/t/ds=1/00000-7-1f2e-00001.parquet", "/t"),
        # One folder of partitions, with a name above it that stays.
        ("/2024/ds=1", "/2024"),
        # Not at the end, not a pair, nothing above it.
        ("/t/ds=1/x", "/t/ds=1/x"),
        ("/t/ds=1/orders.csv", "/t/ds=1/orders.csv"),
        ("/t/part-00000.parquet", "/t/part-00000.parquet"),
        ("/t/a=b=c", "/t/a=b=c"),
        # What Spark and Hive would have written as %HEX is none of theirs.
        ("/t/a=b;c#d&e+f", "/t/a=b;c#d&e+f"),
        ("/t/day=10:30", "/t/day=10:30"),
        ("/t/day=10%3A30", "/t"),
        ("/t/k;%23&+%3D%25é.-=;%23&+%25", "/t"),
        ("/t/100%=1", "/t/100%=1"),
        ("/t/=1", "/t/=1"),
        ("/ds=1", "/ds=1"),
        ("ds=1", "ds=1"),
        ("/ds=1/hour=2", "/ds=1"),
    ],
)
def test_partitions_belong_to_the_dataset_above(path: str, expected: str) -> None:
    assert resolved(path) == expected


@pytest.mark.parametrize(
    "folder",
    [
        "2024/01/15",
        "2024/01",
        "2024-01-15",
        "15.01.2024",
        "20240115",
        "2024-01",
        "202401",
        "20240115T103000Z",
        "2024-01-15T10:30:00Z",
        "2024-01-15 10:30:00.000",
        "2024-01-15-10",
        "2024-02-31",
        "20240115/hour=10",
        "2024/01/15/part-00000.parquet",
        "1234567820240115",
    ],
)
def test_dated_folders_belong_to_the_dataset_above(folder: str) -> None:
    assert resolved(f"/events/{folder}") == "/events"
    assert resolved(f"events/{folder}", "s3://bucket") == "events"
    assert resolved(f"/{folder}".partition("/hour")[0].partition("/part")[0]).strip("/")


@pytest.mark.parametrize(
    "path",
    [
        "/events/2024",
        "/events/2024/1/5",
        "/events/2024/13",
        "/events/01/15",
        "/events/2024-13-01",
        "/events/2024-00-01",
        "/events/0000-01-01",
        "/events/20241301",
        "/events/12024011",
        "/events/123456",
        "/events/2024-01-15T10T11",
        "/events/2024-01-15ZZ",
        "/events/2024-01-15_final",
        "/events/2024-01-15.csv",
        "/events/2024-01-15/orders.csv",
        "/events/2024/01/15/10",
        "/events/v1.2.3",
        "/events/\u0662\u0660\u0662\u0664-\u0660\u0661-\u0661\u0665",
        "/2024-01-15",
        "/2024/01/15",
        "/2024/01",
        "/20240115",
    ],
)
def test_numbers_that_are_no_dates_stay(path: str) -> None:
    assert resolved(path) == path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/*.csv", "/data"),
        ("/data/2024*/", "/data"),
        ("/data/2024*/x/y.csv", "/data"),
        ("/data/{a,b}", "/data"),
        ("/data/{a,b}/x", "/data"),
        ("/data/[0-9]", "/data"),
        ("/data/x[ab].csv", "/data"),
        ("/data/?.csv", "/data"),
        ("/data/ds=1/*.parquet", "/data"),
        ("/data/2024/01/*", "/data"),
        ("/data/ds=*/hour=*", "/data"),
        ("/*.csv", "/"),
        ("/data/copy[1].csv", "/data/copy[1].csv"),
        ("/data/{id}", "/data/{id}"),
        ("/data/[x", "/data/[x"),
        ("/a.b/c.d", "/a.b/c.d"),
    ],
)
def test_globs_belong_to_the_directory_above(path: str, expected: str) -> None:
    assert resolved(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/o?x=1", "/data/o?x=1"),
        ("/data/{a,b}", "/data/{a,b}"),
        ("/data/o*/ds=1/part-0.parquet", "/data/o*"),
        ("/data/ds=1", "/data"),
        ("/data/2024-01-15", "/data"),
    ],
)
def test_in_a_path_that_is_literal_there_are_no_globs(path: str, expected: str) -> None:
    assert PathPatterns().literal.resolve(DatasetName("file", path)) == DatasetName("file", expected)


def test_a_glob_in_a_bucket_is_the_bucket_as_the_listener_spells_it() -> None:
    assert resolved("*.csv", "s3://bucket") == "/"
    assert resolved("a/*.csv", "s3://bucket") == "a"


@pytest.mark.parametrize("namespace", ["kafka://a:9092", "postgres://db:5432", "arn:aws:glue:eu-west-1:1", "elsewhere"])
def test_names_that_are_no_paths_stay(namespace: str) -> None:
    assert resolved("table/t/ds=1", namespace) == "table/t/ds=1"


@pytest.mark.parametrize(
    ("pattern", "namespace", "path", "expected"),
    [
        (r"_v\d+\Z", "file", "/t/orders_v12", "/t/orders"),
        (r"_v\d+\Z", "file", "/t/orders_v12/ds=1", "/t/orders"),
        (r"_v\d+\Z", "file", "/t/orders_v1/x", "/t/orders_v1/x"),
        # What is left is spelled like any other path.
        (r"x\d*\Z", "file", "/t/a/x1", "/t/a"),
        (r"x\d*\Z", "file", "/t/a/..x1", "/t"),
        (r"x\d*\Z", "s3://b", "t/a//x1", "t/a"),
        (r"x\d*\Z", "file", "t/x1", "t"),
        # A pattern that would leave nothing was not meant for this path.
        (r"\d+\Z", "file", "/12", "/12"),
        (r".*\Z", "s3://b", "t/a", "t/a"),
    ],
)
def test_a_pattern_of_ones_own_goes_from_the_end(pattern: str, namespace: str, path: str, expected: str) -> None:
    assert resolved(path, namespace, own=re.compile(pattern)) == expected


@given(st.sampled_from(["file", "s3://b"]), st.lists(FOLDERS, min_size=1, max_size=6))
def test_what_is_left_is_a_directory_above_and_stays(namespace: str, folders: list[str]) -> None:
    path = "/".join(folders) if namespace == "s3://b" else "/" + "/".join(folders)
    left = resolved(path, namespace)
    assert left == "/" or (path + "/").startswith(left + "/")
    assert resolved(left, namespace) == left
