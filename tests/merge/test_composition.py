"""Two steps of column lineage are one (M7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.merge.lineage import Transformation
from spark_lineage.merge.observed import compose, indirect

IDENTITY = Transformation("DIRECT", "IDENTITY")
CHANGED = Transformation("DIRECT", "TRANSFORMATION")
SUMMED = Transformation("DIRECT", "AGGREGATION")
FILTER = Transformation("INDIRECT", "FILTER")
JOIN = Transformation("INDIRECT", "JOIN")
UNTOLD = Transformation("")

STEPS = st.builds(
    Transformation,
    st.sampled_from(["", "DIRECT", "INDIRECT"]),
    st.sampled_from(["", "IDENTITY", "TRANSFORMATION", "AGGREGATION", "FILTER", "NEW"]),
    st.sampled_from(["", "hash"]),
    st.booleans(),
)


@pytest.mark.parametrize(
    ("outer", "inner", "whole"),
    [
        (IDENTITY, IDENTITY, IDENTITY),
        (IDENTITY, SUMMED, SUMMED),
        (CHANGED, IDENTITY, CHANGED),
        (CHANGED, SUMMED, SUMMED),
        (FILTER, IDENTITY, FILTER),
        (IDENTITY, FILTER, FILTER),
        (FILTER, JOIN, JOIN),
        (UNTOLD, SUMMED, SUMMED),
        (FILTER, UNTOLD, FILTER),
        (UNTOLD, UNTOLD, UNTOLD),
    ],
)
def test_the_step_that_did_more_names_the_whole(
    outer: Transformation, inner: Transformation, whole: Transformation
) -> None:
    assert compose(outer, inner) == whole


@pytest.mark.parametrize("masked_first", [True, False])
def test_what_one_step_masked_stays_masked(masked_first: bool) -> None:
    masked = Transformation("DIRECT", "IDENTITY", masking=True)
    pair = (masked, CHANGED) if masked_first else (CHANGED, masked)
    assert compose(*pair) == Transformation("DIRECT", "TRANSFORMATION", masking=True)


def test_an_influence_on_the_whole_is_indirect() -> None:
    assert indirect(FILTER) == FILTER
    assert indirect(SUMMED) == Transformation("INDIRECT", "UNKNOWN")


@given(STEPS, STEPS, STEPS)
def test_it_does_not_matter_where_a_chain_is_cut(
    first: Transformation, second: Transformation, third: Transformation
) -> None:
    assert compose(compose(first, second), third) == compose(first, compose(second, third))


@given(STEPS)
def test_a_copy_changes_nothing(step: Transformation) -> None:
    whole = [compose(step, IDENTITY), compose(IDENTITY, step)]
    if step.type == "DIRECT" and step.subtype:
        assert {(how.type, how.subtype, how.masking) for how in whole} == {(step.type, step.subtype, step.masking)}
