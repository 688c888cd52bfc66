"""What a listener may use: the task, its configuration, a logger, metrics, and asset events.

Airflow takes a task's asset events when its ``execute`` has returned, and forgets those of a task that fails. It makes
one for each asset in ``outlets``; for an asset that is known at run time only, it wants an ``AssetAlias`` there. What
listeners add is kept here until the task's own thread hands it over: a listener that is late may still be writing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.notify.events import TaskRun
from spark_lineage.secrets.redaction import redact, redact_value

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Log

# Airflow is asked for the name of each asset; with many of them the rest goes without.
_SECONDS_FOR_NAMES = 2.0


class ListenerContext(Struct, frozen=True):
    """What a listener may use.

    ``configuration`` are the Spark properties of the job, without secrets. ``options`` are the section
    ``[spark_lineage]`` and, above it, the extra of the Spark connection, keys in lower case: a listener of yours finds
    its own options there, which are as they were set, secrets too. ``metrics`` is Airflow's ``Stats``, ``outlets``
    makes asset events.
    """

    task: TaskRun
    configuration: Mapping[str, str]
    options: Mapping[str, Any]
    logger: Log
    metrics: Any
    outlets: OutletEvents


def listener_context(
    context: Context, *, configuration: Mapping[str, str], options: Mapping[str, Any], logger: Log
) -> ListenerContext:
    """Return the context of the listeners of one try of a task.

    :param context: Airflow's own
    :param configuration: the Spark properties as they are; they are redacted here
    """
    from airflow.providers.common.compat.sdk import Stats

    instance = context["ti"]
    map_index = -1 if instance.map_index is None else instance.map_index
    return ListenerContext(
        task=TaskRun(instance.dag_id, instance.task_id, instance.run_id, map_index, instance.try_number),
        configuration=redact_value(dict(configuration)),
        options=options,
        logger=logger,
        metrics=Stats,
        outlets=OutletEvents(context.get("outlets") or (), context.get("outlet_events"), logger),
    )


class OutletEvents:
    """The outlets of one task, and what is to be said of them; listeners add to them from any thread.

    :param outlets: of the task: assets and aliases (datasets and their aliases in Airflow 2)
    :param events: Airflow's ``outlet_events``, None where there are none
    """

    def __init__(self, outlets: Iterable[Any], events: Any, logger: Log) -> None:
        from airflow.providers.common.compat.sdk import AssetAlias

        self._events = events
        self._log = logger
        self._lock = Lock()
        self._added: dict[str, Mapping[str, Any]] = {}
        self._is_handed_over = False
        outlets = list(outlets)
        self._assets = {one.uri: one for one in outlets if getattr(one, "uri", None)}
        self._aliases = [one for one in outlets if isinstance(one, AssetAlias)]

    @property
    def has_aliases(self) -> bool:
        """Whether events can be made of assets that are no outlets of the task."""
        return bool(self._aliases) and self._events is not None

    def add(self, uri: str, extra: Mapping[str, Any]) -> bool:
        """Have an asset event made, if the task succeeds: through each alias, or by what is itself an outlet.

        :param extra: what the event says, as JSON values; of an outlet of the task, what the task says itself wins
        :return: whether it will be: not for an asset without alias, and not after the task has gone on
        :raises ValueError: for what Airflow takes for no URI of an asset
        """
        from airflow.providers.common.compat.sdk import Asset

        uri = Asset(uri=uri).uri
        with self._lock:
            if self._is_handed_over or self._events is None or not (self._aliases or uri in self._assets):
                return False
            self._added[uri] = dict(extra)
            return True

    def hand_over(self) -> int:
        """Pass on to Airflow what was added, take nothing more, return how many; for the task's own thread."""
        with self._lock:
            self._is_handed_over = True
            added = self._added
        deadline = Deadline(_SECONDS_FOR_NAMES)
        return sum(self._hand_over(uri, extra, is_late=not deadline.seconds_left) for uri, extra in added.items())

    def _hand_over(self, uri: str, extra: Mapping[str, Any], *, is_late: bool) -> bool:
        from airflow.providers.common.compat.sdk import Asset

        try:
            if uri in self._assets:
                accessor = self._events[self._assets[uri]]
                accessor.extra = {**extra, **accessor.extra}
            else:
                asset = Asset(uri=uri) if is_late else _named_asset(self._events, uri)
                for alias in self._aliases:
                    self._events[alias].add(asset, extra=dict(extra))
        except Exception as error:
            self._log.warning("No asset event for %s: %s", redact(uri), redact(f"{type(error).__name__}: {error}"))
            return False
        return True


def _named_asset(events: Any, uri: str) -> Any:
    """Return the asset of a URI by the name that Airflow knows it by, else by its URI."""
    from airflow.providers.common.compat.sdk import Asset

    try:
        # An empty one of the same kind: the task's own would make an event of what it is asked for.
        return type(events)()[Asset.ref(uri=uri)].key.to_asset()
    except Exception:
        return Asset(uri=uri)
