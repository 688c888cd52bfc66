"""Who tells the end of a try: of all who find it lost, one."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import structs

from spark_lineage.launch.directory import LAUNCH_FILE
from spark_lineage.launch.launch import STORE_KEY, Launch, find_launch, read_launch, storable, store_launch
from spark_lineage.launch.stores import claim


class Store:
    """A store of another kind than Airflow's."""

    def __init__(self, launch: Launch | None) -> None:
        self.launch = launch

    def get(self) -> Launch | None:
        return self.launch

    def close(self, launch: Launch) -> bool | None:
        if self.launch != launch:
            return None if self.launch is None or self.launch.run_id != launch.run_id else False
        self.launch = structs.replace(launch, is_closed=True)
        return True


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    launch = Launch(str(tmp_path), "application", try_number=1, run_id="run")
    store_launch(None, launch)
    return launch


def test_one_of_many_gets_it(launch: Launch) -> None:
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            claims = list(pool.map(lambda _: claim(launch, None), range(64)))
    finally:
        sys.setswitchinterval(switching)
    assert claims.count(True) == 1
    closed = read_launch(Path(launch.directory))
    assert closed == structs.replace(launch, is_closed=True)
    assert [file.name for file in Path(launch.directory).iterdir()] == [LAUNCH_FILE]


def test_what_the_try_itself_has_closed_is_nobodys(launch: Launch) -> None:
    store_launch(None, structs.replace(launch, is_closed=True))
    assert not claim(launch, None)
    assert not claim(launch, Store(launch))


def test_the_store_knows_better_where_the_file_is_old(launch: Launch) -> None:
    assert not claim(launch, Store(structs.replace(launch, is_closed=True)))


def test_the_store_decides_alone_where_the_directory_is_not_shared(tmp_path: Path) -> None:
    launch = Launch(str(tmp_path / "elsewhere"), "application", try_number=1, run_id="run")
    store = Store(launch)
    assert claim(launch, store)
    assert store.launch == structs.replace(launch, is_closed=True)
    assert not claim(launch, store)


def test_what_neither_knows_is_nobodys(tmp_path: Path) -> None:
    launch = Launch(str(tmp_path / "elsewhere"), "application", try_number=1, run_id="run")
    assert not claim(launch, Store(None))
    assert not claim(launch, None)


def test_the_file_decides_where_the_next_try_has_the_store(launch: Launch) -> None:
    store = Store(Launch("/other", "other", try_number=2, run_id="next"))
    assert claim(launch, store)
    assert not claim(launch, store)
    assert store.launch is not None
    assert not store.launch.is_closed


def test_a_driver_that_was_taken_over_has_an_end_for_each_try(launch: Launch) -> None:
    assert claim(launch, None)
    next_try = structs.replace(launch, try_number=2, run_id="next")
    store_launch(None, next_try)
    assert claim(next_try, None)
    assert not claim(next_try, None)


@pytest.mark.parametrize(
    ("kept", "stored", "is_found"),
    [
        ("driver-1", "driver-1", True),
        ("driver-1", "driver-2", False),
        ("driver-1", None, False),
        (None, "driver-1", False),
        # In client mode neither has an id: there is no job to go on with.
        (None, None, False),
    ],
)
def test_find_launch_by_the_external_id_gives_that_very_job(
    kept: str | None, stored: str | None, is_found: bool
) -> None:
    launch = Launch("/lineage", "run", external_id=kept)
    found = find_launch({STORE_KEY: storable(launch), "spark_job_id": stored}, "spark_job_id")
    assert found == (launch if is_found else None)
