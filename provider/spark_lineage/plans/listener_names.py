"""Names the datasets of an execution as the listener does, by the options that its application has for that."""

from __future__ import annotations

from msgspec import structs

from spark_lineage.merge.accounting import PlanPart
from spark_lineage.merge.execution import Execution
from spark_lineage.merge.observed import Observed, by_name, with_sources
from spark_lineage.naming.listener_options import ListenerNames
from spark_lineage.plans.tables import path_name


def with_listener_names(one: Execution, names: ListenerNames) -> Execution:
    """Return an execution by the listener's names; an option that cannot be read here is counted as an unread part."""

    def named(observed: Observed) -> Observed:
        former = observed.previous_name
        return structs.replace(
            with_sources(observed, {edge[1]: names.name(edge[1]) for edge in observed.edges}),
            dataset=names.name(observed.dataset),
            previous_name=former and names.name(former).whole,
        )

    def part(unnamed: PlanPart) -> PlanPart:
        return structs.replace(unnamed, sources=tuple(_source(source, names) for source in unnamed.sources))

    unread = {option for each in (*one.inputs, *one.outputs) for option in names.unread(each.dataset)}
    return structs.replace(
        one,
        inputs=by_name(map(named, one.inputs)),
        outputs=by_name(map(named, one.outputs)),
        unnamed=tuple(map(part, one.unnamed)),
        feeds=frozenset(names.name(feed).whole for feed in one.feeds),
        unread=(*one.unread, *sorted(unread)),
    )


def _source(source: str, names: ListenerNames) -> str:
    """Return the path that a leaf reads as the listener has it; a table's name stays."""
    if "/" not in source:
        return source
    former = path_name(source)
    new = names.name(former).name
    return source if new == former.name else f"/{new.lstrip('/')}"
