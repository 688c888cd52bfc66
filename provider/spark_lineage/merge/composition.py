"""Composes column lineage through an intermediate dataset (M7)."""

from __future__ import annotations

from spark_lineage.merge.lineage import Transformation

_DIRECT, _INDIRECT = "DIRECT", "INDIRECT"
# Of two direct steps the one that did more names the whole.
_STRENGTH = {"": 0, "IDENTITY": 1, "TRANSFORMATION": 2, "AGGREGATION": 3}


def compose(outer: Transformation, inner: Transformation) -> Transformation:
    """Return how an output column was made from an input column, through a column in between.

    DIRECT through DIRECT is DIRECT; all else is INDIRECT, as the indirect step says that is nearer to the input: so the
    listener tells the steps of one query. What either step masked is masked. A step without a type says nothing: the
    other one counts.

    :param outer: how the output was made from the column in between
    :param inner: how the column in between was made from the input
    """
    masking = outer.masking or inner.masking
    if not (outer.type and inner.type):
        told = outer if outer.type else inner
    elif outer.type == inner.type == _DIRECT:
        told = inner if _strength(inner) > _strength(outer) else outer
    else:
        told = inner if inner.type != _DIRECT else outer
    return _masked(told, masking=masking)


def indirect(how: Transformation) -> Transformation:
    """Return the same as an influence on the dataset as a whole."""
    return how if how.type == _INDIRECT else Transformation(_INDIRECT, how.subtype, how.description, how.masking)


def _strength(how: Transformation) -> int:
    return _STRENGTH.get(how.subtype, _STRENGTH["TRANSFORMATION"])


def _masked(how: Transformation, *, masking: bool) -> Transformation:
    return how if how.masking == masking else Transformation(how.type, how.subtype, how.description, masking)
