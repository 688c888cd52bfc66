"""A lock ends with its release, whatever was started or forked meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_lineage.launch.lock import release, take


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def taken(path: Path) -> int:
    """The lock, which the test releases."""
    descriptor = take(path)
    assert descriptor is not None
    return descriptor


@pytest.fixture
def child(taken: int) -> Iterator[None]:
    """A process that has the descriptor, as one has between its fork and its program."""
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[taken], start_new_session=True
    )
    yield
    process.communicate(b"\n")


@pytest.mark.usefixtures("child")
def test_release_gives_up_the_lock_that_a_child_has_inherited(path: Path, taken: int) -> None:
    release(taken)
    again = take(path)
    assert again is not None
    release(again)


@pytest.mark.usefixtures("child")
def test_release_of_a_lock_that_is_handed_over_leaves_it_to_the_child(path: Path, taken: int) -> None:
    release(taken, is_handed_over=True)
    assert take(path) is None


def test_take_what_another_one_holds_leaves_nothing_open(path: Path, taken: int) -> None:
    os.close(free := os.dup(taken))
    assert take(path) is None
    os.close(again := os.dup(taken))
    assert again == free
    release(taken)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from Python 3.12 on
def test_fork_after_a_release_closes_no_other_file(path: Path, taken: int, tmp_path: Path) -> None:
    release(taken)
    # It gets the number that is free now.
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
    assert other == taken
    if not (child := os.fork()):
        try:
            os.fstat(other)
        except OSError:
            os._exit(1)
        os._exit(0)
    os.close(other)
    assert os.waitpid(child, 0)[1] == 0
