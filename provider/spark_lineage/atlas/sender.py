"""Sends by a connection of type ``atlas``: a task's events become entities, over REST or Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_lineage.atlas.datasets import COLUMNS, Thing
from spark_lineage.atlas.entities import ENDS, PARTITION_KEYS, Key, Known, entities_of, process_of
from spark_lineage.atlas.hook import AtlasHook
from spark_lineage.atlas.over_kafka import OverKafka
from spark_lineage.atlas.rest import AtlasRefusal, AtlasRest
from spark_lineage.atlas.task_update import Clearing, Renaming, TaskUpdate, task_update
from spark_lineage.atlas.types import VERSION
from spark_lineage.deliver.sender import Refused
from spark_lineage.launch.directory import path_segment
from spark_lineage.launch.log import Log
from spark_lineage.settings.places import outbox_directory, section_settings

if TYPE_CHECKING:
    from spark_lineage.deliver.outgoing import Outgoing

_log = Log(__name__)

_TYPES_SECONDS = 24 * 60 * 60.0
_MAX_CULPRITS = 5
# Atlas's time grows with the square of what a request creates.
_BATCH = 100
_SKEW = 5 * 60 * 1000  # of clocks, in milliseconds
_OWNED = ("lineagePaths", "columnLineages")
# What a dataset is called here, and what this package alone knows of it.
_OURS = frozenset({"qualifiedName", "format"})
_There = Mapping[tuple[str, str], Mapping[str, Any]]


class AtlasSender:
    """Makes the entities of a task's events; events of other jobs are skipped, because Atlas has no place for them.

    :raises SettingError: when the connection is not there, or does not fit
    """

    def __init__(self, conn_id: str) -> None:
        self._hook = hook = AtlasHook(conn_id)
        # The time when types were made, for all processes that share an outbox.
        outbox, name = outbox_directory(section_settings(_log).outbox_dir), path_segment(hook.atlas_conn_id)
        self._stamp = outbox / f"atlas-types-{VERSION}-{name}"
        self._datasets = hook.datasets
        self._channel: _OverRest | OverKafka = OverKafka(hook) if hook.kind == "kafka" else _OverRest(hook)

    def send(self, event: Outgoing) -> None:
        """Send the content of an event, until Atlas or the broker took all of it; errors as of ``Sender``."""
        update = task_update(json.loads(event.body), self._datasets) if event.run_id else None
        if update is None:
            return
        self._make_types()
        try:
            self._channel.take(update)
        except Refused:
            # It may be another Atlas than it was, or an emptied one.
            if not self._make_types(is_needed=True):
                raise
            self._channel.take(update)

    def probe(self) -> tuple[bool, str]:
        """Ask Atlas for its version, or the brokers for their topics."""
        return self._hook.test_connection()

    def close(self) -> None:
        """Close connections."""
        self._channel.close()

    def _make_types(self, *, is_needed: bool = False) -> bool:
        """Make types that are missing, unless that was done today; return whether there were some."""
        with suppress(OSError):
            if not is_needed and time.time() - self._stamp.stat().st_mtime < _TYPES_SECONDS:
                return False
        hook = self._hook.types_hook
        if hook is None:
            return False
        with hook.rest() as atlas:
            are_made = atlas.make_types()
        with suppress(OSError):
            self._stamp.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._stamp.touch()
        return are_made


class _OverRest:
    """Entities by REST; what Atlas has is asked for only where it matters."""

    def __init__(self, hook: AtlasHook) -> None:
        self._options = hook.options
        self._session = hook.get_conn()
        self._atlas = AtlasRest(self._session, hook.url)

    def take(self, update: TaskUpdate) -> None:
        process = self._atlas.entities([update.process]).get(update.process.key, {})
        known = process.get("attributes", {})
        said = update.process.attributes
        if all(known.get(name) == said[name] for name in ("runId", "tryNumber")):
            # What this event of the same try does not know stays.
            said = {name: value for name, value in said.items() if value is not None}
            update.process = replace(update.process, attributes=said)
        if _is_known(update, known):
            _log.debug("Atlas has this event of %s, or a later one: it changes nothing.", update.process.qualified_name)
            return
        self._change_all(update, process)
        if update.is_old and (known.get("logicalDate") or 0) > (update.logical_date or 0):
            _log.debug("Atlas has a newer run of %s: it stays as it is there.", update.process.qualified_name)
        elif update.event_type == "START" and any(_related(process, name, are_active=False) for name in ENDS):
            # A process that is there keeps what its last run had until this one has datasets.
            self._atlas.put(process_of(update))
        else:
            self._deliver(update, process)
        if update.is_terminal:
            # From now on it is known that all of this event is there.
            self._atlas.change(update.process, {"lastEnd": update.time, "changesDone": None})

    def close(self) -> None:
        self._session.close()

    def _deliver(self, update: TaskUpdate, process: Mapping[str, Any]) -> None:
        """Send all of an update; nothing is removed from the process before a run has succeeded."""
        there = self._there(update)
        wanted = {name: () if self._options.is_by_path else getattr(update, name) for name in ENDS}
        lists = [name for name in ENDS if _is_listed(process, name, wanted[name], there, is_whole=update.is_whole)]
        entities = entities_of(update, self._options, lists=lists, known=_known(there, update))
        for table, made in update.remade:
            self._atlas.delete_all(_others(there.get(table.key, {}), table, made, entities.partition_keys))
        guids, culprits = self._put(entities.found)
        by_key = {key: guids.get(each["guid"]) for key, each in entities.by_key.items()}
        if process_guid := by_key[update.process.key]:
            for name in ENDS:
                if name not in lists:
                    # Add and remove them one by one.
                    ends = {guid for each in wanted[name] if (guid := by_key[each.key])}
                    known = _links(process, name)
                    for guid in sorted(ends - known.keys()):
                        self._atlas.relate(name, process_guid, guid)
                    for guid in sorted(known.keys() - ends) if update.is_whole else ():
                        self._atlas.unrelate(known[guid])
        if update.is_whole:
            owned = [guid for name in _OWNED for guid in _links(process, name)]
            self._atlas.delete_all([guid for guid in owned if guid not in guids.values()])
        if culprits:
            more = f"; and {len(culprits) - _MAX_CULPRITS} more" if len(culprits) > _MAX_CULPRITS else ""
            count = f"all but {len(culprits)} of {len(entities.found)} entities"
            raise Refused(f"Atlas has {count}: {'; '.join(culprits[:_MAX_CULPRITS])}{more}")

    def _there(self, update: TaskUpdate) -> _There:
        """Return what Atlas has of the datasets, and of what they are in; columns come with their tables."""
        sources = (each for edges in update.columns for each in edges.sources)
        named = (*update.inputs, *update.outputs, *sources, *(table for table, _ in update.remade))
        everything = {each.key: each for one in named for each in one.all() if each.type not in COLUMNS}
        tables = [each for each in everything.values() if each.column_owner == "table"]
        tables += [table for table, _ in update.remade]
        others = everything.keys() - {each.key for each in tables}
        bare = self._atlas.entities([everything[key] for key in sorted(others)], are_bare=True)
        return {**bare, **self._atlas.entities(tables)}

    def _put(self, entities: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
        """Put entities, some at a time, and one at a time what Atlas refuses; what refers to a culprit goes without it.

        :return: the GUIDs that Atlas gave by temporary ones, and the culprits with Atlas's words
        """
        guids: dict[str, str] = {}
        culprits: list[str] = []
        for start in range(0, len(entities), _BATCH):
            batch = entities[start : start + _BATCH]
            try:
                guids |= self._put_some(batch, guids)
            except AtlasRefusal:
                for entity in batch:
                    try:
                        guids |= self._put_some([entity], guids)
                    except AtlasRefusal as error:
                        culprits.append(f"{entity['typeName']} {entity['attributes']['qualifiedName']}: {error}")
        return guids, culprits

    def _put_some(self, entities: Sequence[Mapping[str, Any]], guids: Mapping[str, str]) -> Mapping[str, str]:
        known = {**guids, **{each["guid"]: each["guid"] for each in entities}}
        answer = self._atlas.put([_resolved(each, known) for each in entities])
        assigned: Mapping[str, str] = answer.get("guidAssignments") or {}
        return assigned

    def _change_all(self, update: TaskUpdate, process: Mapping[str, Any]) -> None:
        """Rename and delete what was not when a part of this event was delivered before; the process counts it."""
        if update.changes and not process:
            self._atlas.put(process_of(update))
        done = process.get("attributes", {}).get("changesDone") or ""
        event, _, number = done.rpartition(" ")
        first = int(number) if event == update.change_id else 0
        for count, (each, at) in enumerate(update.changes[first:], first + 1):
            if isinstance(each, Renaming):
                self._rename(each, at)
            elif isinstance(each, Clearing):
                self._clear(each.place, update, at)
            elif each.type != "hive_table" or not _is_newer(self._atlas.entities([each]).get(each.key, {}), at):
                self._atlas.delete(each)
            self._atlas.change(update.process, {"changesDone": f"{update.change_id} {count}"})

    def _rename(self, renaming: Renaming, time: int) -> None:
        old, new = renaming.old, renaming.new
        found = self._atlas.entities([old, new])
        before, there = found.get(old.key, {}), found.get(new.key, {})
        if not before or _is_newer(before, time) or _is_newer(there, time) or _is_renamed(there, old, time):
            return
        # What is there was dropped: otherwise the table could not have its name.
        self._atlas.delete_all([there["guid"]] if there else [])
        begin, _, end = old.column("|", "").qualified_name.partition("|")
        for column in _columns(before, old).values():
            name = str(column["attributes"]["qualifiedName"])
            if name.startswith(begin):
                known = Thing(old.column_type, {"qualifiedName": name, "name": column["attributes"]["name"]})
                now = new.column(name.removeprefix(begin).removesuffix(end), "").qualified_name
                self._atlas.change(known, {"qualifiedName": now})
        if old.type == "hive_table":
            self._atlas.change(old.storage(), new.storage().attributes)
        # A rename that was interrupted begins anew as long as the old name is there.
        self._atlas.change(old, new.attributes)

    def _clear(self, place: Thing, update: TaskUpdate, time: int) -> None:
        """Delete a database's tables that were not made since, or a table that has other columns at the end."""
        found = self._atlas.entities([place]).get(place.key, {})
        if place.type == "hive_db":
            kept = {each.attributes["name"] for each in update.outputs if place in each.within.values()}
            names = {str(each.get("displayText")) for each in _related(found, "tables")} - kept
            tables = [Thing("hive_table", place.column(name, "").attributes) for name in names]
            there = self._atlas.entities(tables, are_bare=True)
            self._atlas.delete_all([each["guid"] for each in there.values() if not _is_newer(each, time)])
            return
        wanted = {each.key for each in update.schemas if each.within["table"].key == place.key}
        present = {(place.column_type, each["attributes"]["qualifiedName"]) for each in _columns(found, place).values()}
        if wanted and present - wanted and not _is_newer(found, time):
            self._atlas.delete(place)


def _is_newer(entity: Mapping[str, Any], time: int) -> bool:
    """Whether a table of Hive was created after a change, which arrives late and is of a former table of its name."""
    return bool((entity.get("attributes", {}).get("createTime") or 0) > time + _SKEW)


def _is_renamed(there: Mapping[str, Any], old: Thing, time: int) -> bool:
    """Whether the hook of Hive's metastore has renamed a table already: it leaves the old name as an alias."""
    attributes = there.get("attributes", {})
    changed = str((attributes.get("parameters") or {}).get("transient_lastDdlTime") or "")
    is_now = changed.isdecimal() and int(changed) * 1000 > time - _SKEW
    return is_now and old.attributes["name"] in (attributes.get("aliases") or ())


def _is_known(update: TaskUpdate, known: Mapping[str, Any]) -> bool:
    """Whether Atlas has all of an event, or has a later one of its task, by the attributes of the process."""
    if update.time <= (known.get("lastEnd") or 0) or update.time < (known.get("endTime") or 0):
        return True
    begun = update.process.attributes.get("startTime") or 0
    return not update.is_terminal and begun < (known.get("startTime") or 0)


def _related(entity: Mapping[str, Any], *names: str, are_active: bool = True) -> Sequence[Mapping[str, Any]]:
    """Return what an entity is related to; or was, too."""
    related = [each for name in names for each in entity.get("relationshipAttributes", {}).get(name) or ()]
    states = ("entityStatus", "relationshipStatus")
    return [each for each in related if not are_active or "DELETED" not in map(each.get, states)]


def _links(entity: Mapping[str, Any], name: str, *, are_active: bool = True) -> dict[str, str]:
    """Return the same as GUIDs, with those of the relationships."""
    return {each["guid"]: each["relationshipGuid"] for each in _related(entity, name, are_active=are_active)}


def _is_listed(
    process: Mapping[str, Any], name: str, wanted: Sequence[Thing], there: _There, *, is_whole: bool
) -> bool:
    """Whether inputs or outputs can come as a list, which takes one request.

    Atlas compares it, place by place, with one that also has what was taken off: what comes back would not.
    """
    linked, active = _links(process, name, are_active=False), _links(process, name)
    guids = {there[each.key]["guid"] for each in wanted if each.key in there}
    is_same = guids == active.keys() and len(guids) == len(wanted)
    return not linked or (is_whole and not is_same and not guids & (linked.keys() - active.keys()))


def _known(there: _There, update: TaskUpdate) -> Known:
    """Return what stays as it is in Atlas, of what is there and of its columns."""
    known = Known({}, set(), set())
    for table, owner in there.items():
        keys = _links(owner, PARTITION_KEYS)
        for each in (owner, *owner["referred"]):
            key = (each["typeName"], each["attributes"]["qualifiedName"])
            names = {name for name, value in each["attributes"].items() if isinstance(value, str | int) and value}
            is_new = key[0] in COLUMNS and key in update.made
            kept = names & {"name"} if is_new else names - _OURS
            known.attributes[key] = {name: each["attributes"][name] for name in kept}
            if key[0] == "hive_column":
                known.tables.add(table)
            if each["guid"] in keys and key not in update.decided:
                known.partition_keys.add(key)
    return known


def _columns(there: Mapping[str, Any], table: Thing) -> dict[str, Mapping[str, Any]]:
    """Return the columns and the partition keys that a table has in Atlas, by their GUIDs."""
    guids = {guid for name in (table.columns_name, PARTITION_KEYS) for guid in _links(there, name)}
    return {each["guid"]: each for each in there.get("referred") or () if each["guid"] in guids}


def _others(there: Mapping[str, Any], table: Thing, columns: Sequence[Thing], keys: Collection[Key]) -> list[str]:
    """Return the GUIDs of the columns that Atlas has besides these, or in the list of the other kind."""
    wanted = {(each.qualified_name, each.key in keys) for each in columns}
    present, are_keys = _columns(there, table), _links(there, PARTITION_KEYS)
    names = {guid: (each["attributes"]["qualifiedName"], guid in are_keys) for guid, each in present.items()}
    return [guid for guid, each in names.items() if each not in wanted]


def _resolved(value: Any, guids: Mapping[str, str]) -> Any:
    """Return a value with the guids that Atlas gave, without references to what it has refused."""
    if isinstance(value, dict):
        if "guid" in value and "attributes" not in value:
            found = guids.get(value["guid"], "")
            return {**value, "guid": found} if found else None
        resolved = {key: _resolved(each, guids) for key, each in value.items()}
        return {key: each for key, each in resolved.items() if each is not None or value[key] is None}
    if isinstance(value, list):
        return [found for each in value if (found := _resolved(each, guids)) is not None]
    return value
