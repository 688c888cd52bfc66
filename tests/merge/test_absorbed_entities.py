"""Two entities that turn out to be one dataset."""

from __future__ import annotations

import pytest

from spark_lineage.merge.correction import run_of
from spark_lineage.merge.entity import Entity, WriteRun
from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import Statistics
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName


def written(ended: float, *, is_unconfirmed: bool) -> Entity:
    entity, run = Entity(), run_of(Execution("", 0, 0, ended - 1, ended))
    one = Observed(DatasetName("file", f"/{ended}"))
    entity.names.add(one.dataset)
    entity.symlinks |= one.symlinks
    entity.add_write(one, WriteRun(run, None, is_unconfirmed=is_unconfirmed), {}, set())
    return entity


@pytest.mark.parametrize(("absorbing", "absorbed"), [(1.0, 2.0), (2.0, 1.0)])
@pytest.mark.parametrize("is_unconfirmed", [True, False])
def test_the_later_write_says_whether_the_dataset_is_confirmed(
    absorbing: float, absorbed: float, *, is_unconfirmed: bool
) -> None:
    first, second = (written(ended, is_unconfirmed=is_unconfirmed == (ended == 2.0)) for ended in (absorbing, absorbed))
    first.absorb(second)
    assert first.is_unconfirmed is is_unconfirmed
    assert (first.first_written, first.last_written) == (1.0, 2.0)
    assert second.current is first


def test_the_batches_of_a_stream_are_summed_over_both() -> None:
    first, second = Entity(), Entity()
    for entity in (first, second, first):
        one = Observed(DatasetName("file", "/in"), statistics=Statistics(size=10, file_count=1))
        entity.add_read(one, is_schema_reading=False, query="q")
    first.absorb(second)
    first.add_read(one, is_schema_reading=False, query="q")
    assert first.read is not None
    assert first.read.statistics == Statistics(size=40, file_count=4)
