"""Read one event of a task for Atlas: its process, datasets and columns, renames and drops; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from spark_lineage.atlas.datasets import DEFAULT_DATABASE, LAYERS, Datasets, Thing, is_local, layer_of
from spark_lineage.atlas.types import COLUMN_LINEAGE, DAG, PATH, TASK
from spark_lineage.deliver.outgoing import TERMINAL
from spark_lineage.naming.identity import DatasetName

# A run may begin so long after its interval, and still be the newest.
_USUAL_DELAY = timedelta(days=1)
_HASH_LENGTH = 16
_NAMES = {"START": "RUNNING"}
Json = Mapping[str, Any]


class ColumnEdges(NamedTuple):
    """A column of an output, and the columns that its values come from."""

    column: Thing
    sources: tuple[Thing, ...]
    expression: str


class Renaming(NamedTuple):
    """A table or a column under its old and its new name."""

    old: Thing
    new: Thing


class Clearing(NamedTuple):
    """A database that was dropped with its tables, or a table that one of another name replaces."""

    place: Thing


class TaskUpdate:
    """What an event says of its task.

    ``change_id`` is of this event alone, and ``time`` is when it happened, in milliseconds. ``is_whole``: its datasets
    are all that the task has, and others leave the process. ``is_old``: it is a run of an earlier time, such as a
    backfill's. ``paths`` has the inputs of each output. ``changes`` has in order what was renamed, dropped (a thing)
    and cleared, and when, in milliseconds. Nothing that is gone is among the inputs, and what was renamed has its new
    name there. ``remade`` has tables that were made anew, and all of their columns, ``made`` the attributes of
    the tables of Hive among them, of their columns and of altered ones, and ``storages`` where those tables lie.
    ``partition_keys`` are columns, too, ``decided`` those of which it is known whether they are, and ``undecided``
    those of an overwritten table of Hive of which it is not.
    """

    def __init__(self, event: Json, datasets: Datasets, facets: Json, job_facets: Json) -> None:
        self._event = event
        self._facets = facets
        self._job_facets = job_facets
        applications: Any = (facets.get("sparkLineage_application") or {}).get("applications") or ({},)
        self._application: Json = applications[-1]
        host = urlsplit(str(self._application.get("uiUrl") or "")).hostname or ""
        self._datasets = datasets = datasets.on(host)
        is_known = host or event["eventType"] in TERMINAL
        # While the host of the driver is not known, neither is that of local files: a later event has them.
        self._inputs, self._outputs = (
            [each for each in event.get(side) or () if is_known or not is_local(each["namespace"])]
            for side in ("inputs", "outputs")
        )
        self._by_name = {(each["namespace"], each["name"]): each for each in (*self._inputs, *self._outputs)}
        self.event_type: str = event["eventType"]
        self.change_id = f"{event['run'].get('runId')} {event['eventTime']}"
        self.time = _milliseconds(event["eventTime"]) or 0
        self.is_terminal = is_terminal = self.event_type in TERMINAL
        self.is_streaming = is_streaming = job_facets["jobType"].get("processingType") == "STREAMING"
        has_evidence = (facets.get("sparkLineage_collection") or {}).get("runs")
        self.is_whole = self.event_type == "COMPLETE" and bool(self._inputs or self._outputs or has_evidence)
        self._dag_run: Json = facets["airflow"].get("dagRun") or {}
        logical_date = self._dag_run.get("logical_date") or self._dag_run.get("run_after")
        self.logical_date = _milliseconds(logical_date)
        self.is_old = self._is_of_the_past(logical_date)
        self.process = self._process(is_terminal=is_terminal)
        # The changes of catalogs that have happened, as the end of a run names them.
        made = (facets.get("sparkLineage_catalogChanges") or {}).get("changes") or () if is_terminal else ()
        self._made = [each for each in made if not each.get("isIgnored")]
        self.outputs = _once(map(datasets.thing, self._outputs))
        columns = (datasets.thing(each).column(name, "") for each in self._outputs for name in _types(each))
        self._kept = {each.key for each in (*self.outputs, *columns)}
        self.partition_keys: set[tuple[str, str]] = set()
        self.decided: set[tuple[str, str]] = set()
        self.undecided: set[tuple[str, str]] = set()
        self.made: dict[tuple[str, str], Mapping[str, Any]] = {
            each.key: each.attributes for each in self._new_columns()
        }
        self.storages: list[Thing] = []
        self.changes, self.remade = tuple(self._changes()), tuple(self._remade())
        self._moved = self._all_moved()
        self._emptied = {each.place.key for each, _ in self.changes if isinstance(each, Clearing)}
        self.inputs = self._there(self._inputs)
        # Half a way would be another one.
        self.paths = tuple(self._paths()) if is_terminal or is_streaming else ()
        self.schemas = tuple(column for each in self._outputs for column in self._schema(each)) if is_terminal else ()
        self.columns = tuple(self._columns()) if is_terminal else ()

    def path(self, inputs: Sequence[Thing], output: Thing) -> Thing:
        """Return the process of one way through the task."""
        return self._between(PATH, inputs, output)

    def column_lineage(self, edges: ColumnEdges) -> Thing:
        """Return the process between columns."""
        return self._between(COLUMN_LINEAGE, edges.sources, edges.column, expression=edges.expression)

    def _between(self, kind: str, inputs: Iterable[Thing], output: Thing, **more: str) -> Thing:
        """Return what is the same on each run that goes the same way, and another on one that does not."""
        ends = "\n".join([*sorted(each.qualified_name for each in inputs), "", output.qualified_name])
        label = hashlib.sha256(ends.encode()).hexdigest()[:_HASH_LENGTH]
        job, _, namespace = self.process.qualified_name.rpartition("@")
        shown = f"{self.process.attributes['name']}: {output.attributes['name']}"
        names = {"qualifiedName": f"{job}:{label}@{namespace}", "name": shown}
        return Thing(kind, names | more, {"application": self.process})

    def _process(self, *, is_terminal: bool) -> Thing:
        """Return the task in its DAG; the words of its name are found, the task first, and not a part of a word."""
        attributes = self._attributes(is_terminal=is_terminal)
        dag_id, namespace = attributes["dagId"] or attributes["name"], attributes["jobNamespace"]
        *groups, task = str(attributes["taskId"] or attributes["name"]).split(".")
        attributes["name"] = f"{task} ({' '.join((dag_id, *groups))})"
        names = {"qualifiedName": f"{dag_id}@{namespace}", "name": dag_id, "jobNamespace": namespace, "dagId": dag_id}
        return Thing(TASK, attributes, {"dag": Thing(DAG, names)})

    def _attributes(self, *, is_terminal: bool) -> dict[str, Any]:
        airflow, job = self._facets["airflow"], self._event["job"]
        instance = airflow.get("taskInstance") or {}
        status = self._facets.get("sparkLineage_status") or {}
        owners = (self._job_facets.get("ownership") or {}).get("owners") or ()
        error = status.get("error") or (self._facets.get("errorMessage") or {}).get("message")
        description = (self._job_facets.get("documentation") or {}).get("description")
        # What a DAG does not say may have been written in Atlas by hand.
        said = {"description": description, "owner": ", ".join(str(each["name"]) for each in owners)}
        now = _milliseconds(self._event["eventTime"])
        began = _milliseconds(instance.get("start_date")) or (None if is_terminal else now)
        return {
            "qualifiedName": f"{job['name']}@{job['namespace']}",
            "name": job["name"],
            **{name: text for name, text in said.items() if text},
            "jobNamespace": job["namespace"],
            "dagId": (airflow.get("dag") or {}).get("dag_id"),
            "taskId": (airflow.get("task") or {}).get("task_id"),
            "runId": self._dag_run.get("run_id"),
            "logicalDate": self.logical_date,
            "tryNumber": instance.get("try_number"),
            "state": _NAMES.get(self.event_type, self.event_type),
            # An end does not say it, and the one that the START gave stays.
            **({"startTime": began} if began else {}),
            "endTime": now if is_terminal else None,
            "error": error,
            "applicationId": self._application.get("applicationId"),
            "uiUrl": status.get("uiUrl"),
            "historyUrl": status.get("historyUrl"),
            "logsUrl": status.get("logsUrl") or instance.get("log_url"),
        }

    def _is_of_the_past(self, logical_date: Any) -> bool:
        if self._dag_run.get("run_type") == "backfill":
            return True
        begin, end = (_time(self._dag_run.get(f"data_interval_{side}")) for side in ("start", "end"))
        if not (begin and end):
            begin = end = _time(logical_date)
        return bool(begin and end) and end + (end - begin) + _USUAL_DELAY < _time(self._event["eventTime"])  # type: ignore[operator]

    def _named(self, name: Json) -> Thing:
        return self._datasets.thing(self._by_name.get((name["namespace"], name["name"]), name))

    def _paths(self) -> Iterator[tuple[tuple[Thing, ...], Thing]]:
        entries = (self._job_facets.get("lineage") or {}).get("entries") or ()
        fed_by = {(each["namespace"], each["name"]): each.get("inputs") or () for each in entries}
        for output in self._outputs:
            # Without an entry of its own, every input may feed it.
            inputs = fed_by.get((output["namespace"], output["name"]), () if entries else self._inputs)
            yield self._there(inputs), self._named(output)

    def _schema(self, dataset: Json) -> Iterator[Thing]:
        thing = self._datasets.thing(dataset)
        if thing.column_owner == "table":
            yield from (thing.column(name, kind) for name, kind in _types(dataset).items())

    def _columns(self) -> Iterator[ColumnEdges]:
        for output in self._outputs:
            fields = ((output.get("facets") or {}).get("columnLineage") or {}).get("fields") or {}
            types, thing = _types(output), self._datasets.thing(output)
            for column, edges in fields.items():
                direct = [each for each in edges.get("inputFields") or () if _is_direct(each)]
                if sources := _once(column for each in direct for column in self._column(each)):
                    yield ColumnEdges(thing.column(column, types.get(column, "")), sources, _expression(direct))

    def _column(self, edge: Json) -> Iterator[Thing]:
        types = _types(self._by_name.get((edge["namespace"], edge["name"]), {}))
        for table in self._there([edge]):
            column = self._now(table.column(edge["field"], types.get(edge["field"], "")))
            yield from [column] if column is not None else ()

    def _there(self, names: Iterable[Json]) -> tuple[Thing, ...]:
        """Return the datasets of these names that are there at the end."""
        return _once(now for each in names if (now := self._now(self._named(each))) is not None)

    def _now(self, thing: Thing) -> Thing | None:
        """Return what a thing is called at the end, None for one that is gone."""
        now = self._moved.get(thing.key, thing)
        for above in now.all() if now is not None else ():
            if above.key in self._kept:
                break
            if (above.type == "hive_db" and above.key in self._emptied) or self._moved.get(above.key, above) is None:
                return None
        return now

    def _all_moved(self) -> Mapping[tuple[str, str], Thing | None]:
        """Return under which name each thing is there at the end, by its key before; None for one that is gone."""
        moved: dict[tuple[str, str], Thing | None] = {}
        for each, _ in self.changes:
            if not isinstance(each, Clearing):
                old, new = each if isinstance(each, Renaming) else (each, None)
                former = [key for key, now in moved.items() if now is not None and now.key == old.key]
                moved |= dict.fromkeys([*former, old.key], new)
        return {key: now for key, now in moved.items() if key not in self._kept}

    def _new_columns(self) -> Iterator[Thing]:
        """Return the columns that are new, or have a new type or a new name, of the table's name at the end."""
        for place, change in enumerate(self._made):
            columns = change.get("columns") or () if change["change"] == "ALTER" else ()
            for later in self._made[place:] if columns else ():
                if later.get("previousObjectName") == change["objectName"]:
                    change = later  # noqa: PLW2901
            yield from (_described(self._named(change), new) for each in columns if (new := each.get("new")))

    def _changes(self) -> Iterator[tuple[Thing | Renaming | Clearing, int]]:
        """Return what was dropped and is not there at the end, and what was renamed, with both names; and when."""
        changes = self._made
        last = {each["objectName"]: each for each in changes}
        for place, each in enumerate(changes):
            time, is_last = _milliseconds(each.get("time")) or self.time, last[each["objectName"]] is each
            yield from ((one, time) for one in self._changed(each, changes[:place], is_last=is_last))

    def _changed(self, each: Json, before: Sequence[Json], *, is_last: bool) -> Iterator[Thing | Renaming | Clearing]:
        name = each["objectName"]
        if each["change"] == "RENAME":
            previous = str(each.get("previousObjectName") or "")
            old, new = self._object(each, previous), self._object(each, name)
            if old is None or new is None or old.type != new.type or old.key == new.key:
                return
            # A table that was written beside the old one, to take its place, is the old one made anew.
            is_anew = _has(before, "DROP", name) and _has(before, "CREATE", previous)
            if _has(before, "DROP", name) and not is_anew and new.type == "hive_table":
                yield Clearing(new)
            yield old if is_anew else Renaming(old, new)
        elif each["change"] == "DROP":
            found = tuple(self._dropped(each, name))
            yield from map(Clearing, found if each["objectType"] == "DATABASE" else ())
            yield from (one for one in found if is_last and one.key not in self._kept)
        elif each["change"] == "ALTER":
            is_named = (each["namespace"], each["name"]) in self._by_name
            table = (None if is_named else self._object(each, name)) or self._named(each)
            altered = _altered(table, each.get("columns") or ())
            yield from (one for one in altered if isinstance(one, Renaming) or one.key not in self._kept)

    def _dropped(self, change: Json, name: str) -> Iterator[Thing]:
        if change["objectType"] == "DATABASE":
            if self._is_hives(change):
                # A database has no host: those of its tables know the cluster.
                like = next((each for each in self._by_name.values() if _is_in_hive(each)), change)
                yield self._datasets.table(f"{name}.", DatasetName(like["namespace"], name)).within["db"]
            return
        if (table := self._object(change, name)) is not None and table.type == "hive_table":
            yield table
        if _is_managed(change["name"], name):
            yield self._named(change)

    def _remade(self) -> Iterator[tuple[Thing, tuple[Thing, ...]]]:
        found: dict[str, Json] = {}
        for each in self._made:
            before = found.pop(str(each.get("previousObjectName")), None) if each["change"] == "RENAME" else None
            if each["change"] in ("CREATE", "OVERWRITE") and each.get("isCertain", True):
                before = found.get(each["objectName"], {})
            if before is not None:
                is_created = each["change"] == "CREATE" or before.get("isCreated")
                found[each["objectName"]] = {**before, **each, "isCreated": is_created}
        for each in found.values():
            dataset = self._by_name.get((each["namespace"], each["name"]), {})
            if fields := _fields(dataset):
                thing = self._datasets.thing(dataset)
                columns = [_described(thing, column) for column in fields]
                self.made |= {column.key: column.attributes for column in columns}
                if thing.type == "hive_table":
                    self._make(thing, each, columns, dataset)
                # A write into a table of Delta may leave out columns, which stay.
                if each["isCreated"] or layer_of(dataset.get("facets") or {}) != "delta":
                    yield thing, tuple(columns)

    def _make(self, table: Thing, change: Json, columns: Sequence[Thing], dataset: Json) -> None:
        """Note what Hive's hook would write of a table, its columns and its files."""
        # Formats that have a catalog of their own keep their keys there.
        is_hives = layer_of(dataset.get("facets") or {}) not in LAYERS
        keys = {str(each).lower() for each in change.get("partitionedBy") or () if is_hives}
        if keys or change["isCreated"]:
            self.decided |= {each.key for each in columns}
        elif is_hives:
            self.undecided |= {each.key for each in columns}
        self.partition_keys |= {each.key for each in columns if each.attributes["name"] in keys}
        places = count(), count()
        for each in columns:
            self.made[each.key] = {**each.attributes, "position": next(places[each.key in self.partition_keys])}
        known = {
            "comment": (change.get("properties") or {}).get("comment"),
            "createTime": _milliseconds(change.get("time")),
            "owner": self.process.attributes.get("owner"),
        }
        namespace, name = str(dataset["namespace"]), str(dataset["name"])
        if not namespace.startswith("hive:"):
            known["tableType"] = "MANAGED_TABLE" if _is_managed(name, change["objectName"]) else "EXTERNAL_TABLE"
            location = f"{namespace}{':' if namespace == 'file' else '' if name.startswith('/') else '/'}{name}"
            self.storages.append(table.storage(location=location, compressed=False))
        self.made[table.key] = {key: value for key, value in known.items() if value}

    def _object(self, change: Json, name: str) -> Thing | None:
        """Return the table of this name, or old name, in a catalog; None where its place in Atlas is not known."""
        where = DatasetName(change["namespace"], change["name"])
        if self._is_hives(change):
            return self._datasets.table(name, where) if "." in name else None
        (now, old) = (each.rpartition(".")[2] for each in (change["objectName"], name))
        if now == old:
            return self._named(change)
        # Where Spark puts a table, its name is the last part; one that lies elsewhere stays there.
        if not where.name.endswith((f"/{now}", f".{now}")):
            return None
        return self._datasets.thing({"namespace": where.namespace, "name": where.name.removesuffix(now) + old})

    def _is_hives(self, change: Json) -> bool:
        """Whether a change is of the session's catalog, and that is Hive's.

        Spark's own catalog, and others, may have a table of the same name as one in Hive, which is unchanged.
        """
        if change.get("catalog") not in (None, "", "spark_catalog"):
            return False
        is_hive = change["namespace"].startswith("hive://") or any(map(_is_in_hive, self._by_name.values()))
        return is_hive or self._datasets.has_warehouses


def task_update(event: Json, datasets: Datasets) -> TaskUpdate | None:
    """Return what the JSON of a ``RunEvent`` says, None for one of no task: of a DAG run, a child run, a dataset."""
    run, job = event.get("run") or {}, event.get("job") or {}
    facets, job_facets = run.get("facets") or {}, job.get("facets") or {}
    kind = job_facets.get("jobType") or {}
    if "airflow" not in facets or kind.get("jobType") != "TASK" or not event.get("eventType"):
        return None
    return TaskUpdate(event, datasets, facets, job_facets)


def _has(changes: Sequence[Json], change: str, name: Any) -> bool:
    return any((each["change"], each["objectName"]) == (change, name) for each in changes)


def _altered(table: Thing, columns: Sequence[Json]) -> Iterator[Thing | Renaming]:
    for each in columns:
        if (old := each.get("old")) is None:
            continue
        column = table.column(old["name"], "")
        if (new := each.get("new")) is None:
            yield column
        elif (renamed := table.column(new["name"], "")).key != column.key:
            yield Renaming(column, renamed)


def _is_in_hive(dataset: Json) -> bool:
    links = ((dataset.get("facets") or {}).get("symlinks") or {}).get("identifiers") or ()
    return any(str(each["namespace"]).startswith("hive://") for each in (dataset, *links))


def _is_managed(path: str, table: str) -> bool:
    """Whether a table's files lie where Spark puts those of its own, and were dropped with it."""
    database, _, name = table.lower().rpartition(".")
    in_default = (f"/warehouse/{name}",) if database in ("", DEFAULT_DATABASE) else ()
    return f"/{path.rstrip('/').lower()}".endswith((f"/{database}.db/{name}", *in_default))


def _is_direct(edge: Json) -> bool:
    kinds = [each.get("type") for each in edge.get("transformations") or ()]
    return not kinds or "DIRECT" in kinds


def _expression(edges: Iterable[Json]) -> str:
    said = {str(each.get("subtype") or each["type"]) for edge in edges for each in edge.get("transformations") or ()}
    return ", ".join(sorted(said))


def _described(table: Thing, field: Json) -> Thing:
    """Return a column of a table with the comment that an event has of it."""
    column, comment = table.column(str(field["name"]), _type(field)), field.get("description")
    return replace(column, attributes={**column.attributes, "comment": str(comment)}) if comment else column


def _fields(dataset: Json) -> Sequence[Json]:
    return ((dataset.get("facets") or {}).get("schema") or {}).get("fields") or ()


def _types(dataset: Json) -> dict[str, str]:
    return {str(each["name"]): _type(each) for each in _fields(dataset)}


def _type(column: Json) -> str:
    """Return the type of a column with those within it, as Spark's ``simpleString`` has it."""
    kind, within = str(column.get("type") or ""), column.get("fields") or ()
    if not within or kind not in ("struct", "array", "map"):
        return kind
    # Elements, keys and values have names in the facet alone.
    types = (f"{each['name']}:{_type(each)}" if kind == "struct" else _type(each) for each in within)
    return f"{kind}<{','.join(types)}>"


def _once(things: Iterable[Thing]) -> tuple[Thing, ...]:
    return tuple({each.key: each for each in things}.values())


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _milliseconds(text: Any) -> int | None:
    found = _time(text)
    return None if found is None else round(found.timestamp() * 1000)
