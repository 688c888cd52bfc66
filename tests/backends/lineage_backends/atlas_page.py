"""The page of the Atlas emulator: its processes, and what is around one entity."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from lineage_backends.atlas_store import Entity, Store

_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; color: #222 }
table { border-collapse: collapse } td, th { padding: .3em 1em .3em 0; text-align: left; vertical-align: top }
.lineage td { border: 1px solid #ccc; padding: .6em 1em; min-width: 14em } .DELETED { text-decoration: line-through }
small { color: #777 } a { color: #05c }
"""


def page(graph: Store, guid: str) -> str:
    """The entity of a GUID with its lineage, or the list of processes without one."""
    body = _entity(graph, graph.entities[guid]) if guid in graph.entities else _processes(graph)
    return f"<!doctype html><title>Atlas emulator</title><style>{_STYLE}</style><h1><a href='/'>Atlas</a></h1>{body}"


def _processes(graph: Store) -> str:
    rows = "".join(
        f"<tr><td>{_link(each)}</td><td>{_list(graph.related(each, 'inputs'))}</td>"
        f"<td>{_list(graph.related(each, 'outputs'))}</td></tr>"
        for each in graph.of_type("Process")
    )
    others = [each for each in graph.of_type("Referenceable") if "Process" not in graph.types.lineage(each.type)]
    head = "<tr><th>process</th><th>inputs</th><th>outputs</th></tr>"
    return f"<h2>Processes</h2><table>{head}{rows}</table><h2>Other entities</h2>{_list(others)}"


def _entity(graph: Store, entity: Entity) -> str:
    rows = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
        for key, value in sorted(entity.attributes.items())
        if value not in (None, "", [], {}, 0)
    )
    related = "".join(
        f"<tr><th>{escape(name)}</th><td>{_list(graph.related(entity, name))}</td></tr>"
        for name in graph.types.relations(entity.type)
        if graph.related(entity, name)
    )
    return (
        f"<h2 class={entity.status}>{_link(entity)}</h2>{_lineage(graph, entity)}"
        f"<h3>Attributes</h3><table>{rows}</table><h3>Relationships</h3><table>{related}</table>"
    )


def _lineage(graph: Store, entity: Entity) -> str:
    """A row a process: of the entity itself, or what makes it and what reads it."""
    if "Process" in graph.types.lineage(entity.type):
        processes = [entity]
    else:
        processes = graph.related(entity, "outputFromProcesses") + graph.related(entity, "inputToProcesses")
    rows = "".join(
        f"<tr><td>{_list(graph.related(each, 'inputs'), graph)}</td><td>→ {_link(each)} →</td>"
        f"<td>{_list(graph.related(each, 'outputs'), graph)}</td></tr>"
        for each in dict.fromkeys(processes)
    )
    return f"<h3>Lineage</h3><table class=lineage>{rows}</table>" if rows else ""


def _list(entities: Iterable[Entity], graph: Store | None = None) -> str:
    """Links; with a graph, each with its columns."""
    parts = []
    for each in entities:
        columns = graph.related(each, "columns") if graph else []
        names = ", ".join(escape(str(column.attributes.get("name"))) for column in columns)
        parts.append(f"{_link(each)}<br>" + (f"<small>{names}</small><br>" if names else ""))
    return "".join(parts)


def _link(entity: Entity) -> str:
    name = escape(str(entity.attributes.get("qualifiedName")))
    return f"<a class={entity.status} href='/?guid={entity.guid}'>{name}</a> <small>{escape(entity.type)}</small>"
