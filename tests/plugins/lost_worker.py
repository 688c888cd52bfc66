"""Recovers a task whose process was lost in the laboratory, as the next try or the scheduler does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from spark_lineage.launch.launch import TaskKey, launches_below
from spark_lineage.launch.log import Log
from spark_lineage.recover.recovery import Recovered, end_leftovers, recover
from spark_lineage.recover.search import LostTry
from spark_lineage.settings.places import Places

if TYPE_CHECKING:
    from laboratory import Bench


def recovered(bench: Bench, run: Callable[[], object]) -> Recovered:
    """Run a task that loses its process, and return what is recovered of it; no process of it is left."""
    with pytest.raises(AssertionError):
        run()
    (launch,) = launches_below(bench.lineage_dir)
    lost = LostTry(TaskKey("shop", "manual", "load"), launch)
    return recover(lost, Places(), ended_processes=end_leftovers(launch), logger=Log(__name__))
