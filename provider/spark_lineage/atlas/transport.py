"""The transport of a connection of type ``atlas``: a task's events become entities, over REST or Kafka."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attr
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from openlineage.client.transport.transport import Config, Transport

from spark_lineage.atlas.entities import Reference, entities_of
from spark_lineage.atlas.hook import AtlasHook
from spark_lineage.atlas.messages import creation, deletion, parts_of, renaming
from spark_lineage.atlas.rest import AtlasRest, RefusedError
from spark_lineage.atlas.task_update import TaskUpdate, task_update
from spark_lineage.deliver.transports.errors import NotTakenError
from spark_lineage.deliver.transports.opening import make_transport
from spark_lineage.launch.directory import encoded
from spark_lineage.settings.places import outbox_directory, section_settings

if TYPE_CHECKING:
    from openlineage.client.client import Event

    from spark_lineage.atlas.datasets import Thing

_log = logging.getLogger(__name__)

_TYPES_SECONDS = 24 * 60 * 60.0
_MAX_CULPRITS = 5


@attr.define
class AtlasConfig(Config):
    """The configuration: the id of a connection of type ``atlas``."""

    conn_id: str

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> AtlasConfig:
        """Read it."""
        return cls(str(params["conn_id"]))


class AtlasTransport(Transport):
    """Makes the entities of a task's events; events of other jobs are passed over, for Atlas has no place for them.

    :raises SettingError: when the connection is not there, or does not fit
    """

    kind = "spark_lineage_atlas"
    config_class = AtlasConfig

    def __init__(self, config: AtlasConfig) -> None:
        hook = AtlasHook(config.conn_id)
        self._types = _Types(hook)
        self._datasets = hook.datasets
        self._way: _OverRest | _OverKafka = _OverKafka(hook) if hook.kind == "kafka" else _OverRest(hook)

    def emit(self, event: Event) -> None:
        """Bring what an event says to Atlas.

        :raises NotTakenError: unless Atlas, or the broker, said yes to all of it
        """
        if isinstance(event, RunEvent):
            update = task_update(json.loads(Serde.to_json(event)), self._datasets)
            if update is not None:
                self._types.make()
                self._way.take(update)

    def close(self, timeout: float = -1) -> bool:
        """Close connections."""
        return self._way.close(timeout)


class _Types:
    """Looks after our types, once a day for all processes that share an outbox."""

    def __init__(self, hook: AtlasHook) -> None:
        self._hook = hook
        self._stamp = outbox_directory(section_settings(_log).outbox_dir) / f"atlas-types-{encoded(hook.atlas_conn_id)}"

    def make(self) -> None:
        with suppress(OSError):
            if time.time() - self._stamp.stat().st_mtime < _TYPES_SECONDS:
                return
        hook = self._hook.types_hook
        if hook is None:
            return
        with hook.rest() as atlas:
            atlas.make_types()
        with suppress(OSError):
            self._stamp.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._stamp.touch()


class _OverRest:
    """Entities by REST; what Atlas has is asked for only where it matters."""

    def __init__(self, hook: AtlasHook) -> None:
        self._options = hook.options
        self._session = hook.get_conn()
        self._atlas = AtlasRest(self._session, hook.url)

    def take(self, update: TaskUpdate) -> None:
        if update.is_old and self._is_newer_there(update):
            _log.info("Atlas has a newer run of %s: this one changes nothing there.", update.process.qualified_name)
            return
        if update.is_whole:
            for old, new in update.renamed:
                self._rename(old, new)
            self._put(update)
            self._drop(update)
        elif update.event_type == "START":
            # A process that is there keeps what its last run had until this one tells more.
            made = self._atlas.put(entities_of(update, has_lists=False))
            if (update.inputs or update.outputs) and (made.get("mutatedEntities") or {}).get("CREATE"):
                self._put(update)
        else:
            self._add(update)

    def close(self, timeout: float) -> bool:  # noqa: ARG002 - as openlineage-python has it
        self._session.close()
        return True

    def _is_newer_there(self, update: TaskUpdate) -> bool:
        there = self._atlas.entity(update.process)
        date = (there or {}).get("attributes", {}).get("logicalDate")
        return bool(date and update.logical_date) and int(date) > int(update.logical_date or 0)

    def _add(self, update: TaskUpdate) -> None:
        """Add what a run has so far; nothing leaves the process before a run has ended well."""
        there = self._atlas.entity(update.process) or {}
        others, has_all = {}, bool(there)
        for name, things in (("inputs", update.inputs), ("outputs", update.outputs)):
            known = _related(there, name)
            own = {thing.key for thing in things}
            others[name] = [reference for key, reference in known.items() if key not in own]
            has_all = has_all and own <= known.keys()
        if has_all and not update.is_terminal:
            return
        self._put(update, others)
        self._drop(update)

    def _put(self, update: TaskUpdate, others: Mapping[str, Sequence[Reference]] | None = None) -> None:
        options = self._options
        entities = entities_of(
            update, has_lists=True, is_by_path=options.is_by_path, has_columns=options.has_columns, others=others
        )
        try:
            self._atlas.put(entities)
        except RefusedError:
            self._put_each(entities)

    def _put_each(self, entities: Sequence[Mapping[str, Any]]) -> None:
        """Put one after the other what Atlas has refused together; what refers to a culprit goes without it.

        :raises NotTakenError: with Atlas's words about the culprits
        """
        guids: dict[str, str] = {}
        culprits: list[str] = []
        for entity in entities:
            own = {key: _resolved(value, guids) for key, value in entity.items()}
            try:
                answer = self._atlas.put([own])
            except RefusedError as error:
                culprits.append(f"{entity['typeName']} {entity['attributes']['qualifiedName']}: {error}")
                continue
            guids[entity["guid"]] = (answer.get("guidAssignments") or {}).get(entity["guid"], "")
        if culprits:
            more = f"; and {len(culprits) - _MAX_CULPRITS} more" if len(culprits) > _MAX_CULPRITS else ""
            words = "; ".join(culprits[:_MAX_CULPRITS])
            raise NotTakenError(
                f"Atlas has all but {len(culprits)} of {len(entities)} entities: {words}{more}", is_refusal=True
            )

    def _rename(self, old: Thing, new: Thing) -> None:
        there = self._atlas.entity(old)
        if there is None or self._atlas.entity(new) is not None:
            return
        columns = [
            each for each in there.get("relationshipAttributes", {}).get(old.columns_name) or () if _is_active(each)
        ]
        self._atlas.rename(old, new)
        for each in columns:
            name = str(each.get("displayText"))
            self._atlas.rename(old.column(name, ""), new.column(name, ""))

    def _drop(self, update: TaskUpdate) -> None:
        for each in update.dropped:
            self._atlas.delete(each)


class _OverKafka:
    """Entities by notifications: nothing can be asked, and no answer comes but the broker's."""

    def __init__(self, hook: AtlasHook) -> None:
        self._options = hook.options
        self._user = hook.fields.login or "spark-lineage"
        self._transport: Any = make_transport(hook.kafka_config())

    def take(self, update: TaskUpdate) -> None:
        for notification in self._notifications(update):
            for part in parts_of(notification):
                # Of one process in one partition: Atlas takes them in order.
                self._transport.send(update.process.qualified_name, part)

    def close(self, timeout: float) -> bool:
        return bool(self._transport.close(timeout))

    def _notifications(self, update: TaskUpdate) -> Iterator[Mapping[str, Any]]:
        for old, new in update.renamed:
            yield renaming(old, new, self._user)
            for column in update.schemas:
                if new.key in {each.key for each in column.within.values()}:
                    yield renaming(old.column(column.attributes["name"], ""), column, self._user)
        # What a job has so far would take the rest of its last run away, and that of one that failed, too.
        has_lists = update.is_whole or update.is_streaming or update.event_type == "START"
        options = self._options
        entities = entities_of(
            update, has_lists=has_lists, is_by_path=options.is_by_path, has_columns=options.has_columns
        )
        yield creation(entities, self._user)
        if update.dropped:
            yield deletion(update.dropped, self._user)


def _is_active(reference: Mapping[str, Any]) -> bool:
    return "DELETED" not in (reference.get("entityStatus"), reference.get("relationshipStatus"))


def _related(entity: Mapping[str, Any], name: str) -> dict[tuple[str, str], Reference]:
    """Return what an entity is related to now, by type and qualified name.

    What has left it stays in the attribute, which knows names; the relationship knows whether it has left.
    """
    now = {each["guid"] for each in entity.get("relationshipAttributes", {}).get(name) or () if _is_active(each)}
    return {
        (each["typeName"], (each.get("uniqueAttributes") or {}).get("qualifiedName", "")): {
            "typeName": each["typeName"],
            "guid": each["guid"],
        }
        for each in entity.get("attributes", {}).get(name) or ()
        if each["guid"] in now
    }


def _resolved(value: Any, guids: Mapping[str, str]) -> Any:
    """Return a value with the guids that Atlas gave, without references to what it has refused."""
    if isinstance(value, dict):
        if value.keys() == {"typeName", "guid"}:
            guid = value["guid"]
            found = guids.get(guid, "") if guid.startswith("-") else guid
            return {**value, "guid": found} if found else None
        resolved = {key: _resolved(each, guids) for key, each in value.items()}
        return {key: each for key, each in resolved.items() if each is not None or value[key] is None}
    if isinstance(value, list):
        return [found for each in value if (found := _resolved(each, guids)) is not None]
    return value
