"""Tells which columns an ALTER changed, from the columns before and after it (M11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from spark_lineage.merge.lineage import ColumnChange, SchemaField


def column_changes(old: Sequence[SchemaField], new: Sequence[SchemaField]) -> tuple[ColumnChange, ...]:
    """Return what an ALTER changed, by column name; a column that lost only its name was renamed."""
    if not old or not new:
        return ()
    before, after = {field.name: field for field in old}, {field.name: field for field in new}
    if len(old) == len(new):
        gone = [position for position, field in enumerate(old) if field.name not in after]
        come = [position for position, field in enumerate(new) if field.name not in before]
        if gone == come and all(structs.replace(old[at], name=new[at].name) == new[at] for at in gone):
            return tuple(ColumnChange(old[at], new[at]) for at in gone) + _retyped(old, after)
    dropped = tuple(ColumnChange(field, None) for field in old if field.name not in after)
    added = tuple(ColumnChange(None, field) for field in new if field.name not in before)
    return dropped + added + _retyped(old, after)


def _retyped(old: Sequence[SchemaField], after: Mapping[str, SchemaField]) -> tuple[ColumnChange, ...]:
    return tuple(
        ColumnChange(field, after[field.name]) for field in old if field.name in after and after[field.name] != field
    )
