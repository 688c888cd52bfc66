"""Makes Airflow asset events for the outputs that a task has written, so that they trigger DAGs (``emit_assets``).

Airflow reads the outlets of a task, and what is said of them, when ``execute`` has returned, and forgets both where the
task fails. So a task needs no outlets in its DAG file: they are added when the job has ended. In Airflow 3 that is an
alias, by which Airflow makes assets that it does not know. Airflow 2 fails a task with an alias that no DAG file names;
there the datasets themselves are added, and one that no DAG names makes no event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import structs

from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.merge.lineage import DatasetLineage, TaskLineage
from spark_lineage.naming.identity import DatasetName, storage_identifier
from spark_lineage.notify.job_events import application_ids

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Log

ALIAS = "spark_lineage"
"""The alias of a task whose DAG names none."""
_WRITING_NOTHING = frozenset({"ALTER", "RENAME"})
_MOST_COLUMNS = 1000
# Airflow is asked for the name of each asset; with many of them the rest goes without.
_SECONDS_FOR_NAMES = 2.0
# Airflow compares URIs as texts, so what is ASCII stays as it is, but for what would end the path or begin an escape.
# Airflow's API server fails the task for any other character.
_KEPT = "".join(set(map(chr, range(0x20, 0x7F))) - set("%?#"))


def emit_assets(lineage: TaskLineage, context: Context, logger: Log) -> int:
    """Add an asset event for each output that was written; return how many Airflow makes if the task succeeds.

    For the task's own thread. What has no URI of an asset is logged.
    """
    from airflow.providers.common.compat.sdk import Asset, AssetAlias

    written: dict[str, Mapping[str, Any]] = {}
    for each in written_outputs(lineage):
        output = redact_lineage(structs.replace(each, column_lineage=None))
        uri = asset_uri(output.dataset)
        if uri is None:
            logger.debug("There is no asset for %s %s", output.dataset.namespace, output.dataset.name)
            continue
        try:
            written[Asset(uri=uri).uri] = _extra(output, lineage)
        except ValueError as error:
            # The provider of its scheme wants more of a URI, or it is too long.
            logger.warning("Airflow takes no asset %s: %s", uri, error)
    task, events = context["ti"].task, context["outlet_events"]
    outlets = list(task.outlets or ())
    declared = {one.uri: one for one in outlets if getattr(one, "uri", None)}
    aliases = [one for one in outlets if isinstance(one, AssetAlias)]
    if not aliases and hasattr(Asset, "ref"):
        aliases = [AssetAlias(ALIAS)]
        outlets += aliases
    deadline = Deadline(_SECONDS_FOR_NAMES)
    for uri, extra in written.items():
        if uri in declared:
            accessor = events[declared[uri]]
            accessor.extra = {**extra, **accessor.extra}
            continue
        asset = _named_asset(events, uri) if deadline.seconds_left else Asset(uri=uri)
        for alias in aliases:
            events[alias].add(asset, extra=dict(extra))
        if not aliases:
            outlets.append(asset)
            events[asset].extra = dict(extra)
    if written:
        task.outlets = outlets
    return len(written)


def written_outputs(lineage: TaskLineage) -> Iterator[DatasetLineage]:
    """Return the outputs that have other content than before, as far as that is certain.

    Those that were only altered or renamed are none of them, nor those of which Spark's word alone says that they were
    written (``unconfirmed``). A table that was made empty, or emptied, is one.
    """
    unconfirmed = set(lineage.unconfirmed)
    for output in lineage.outputs:
        if output.dataset not in unconfirmed and (output.writes or output.lifecycle not in _WRITING_NOTHING):
            yield output


def _extra(output: DatasetLineage, lineage: TaskLineage) -> dict[str, Any]:
    """Return what the asset event says: names as OpenLineage has them, and numbers where Spark counted.

    Airflow 2 wants values that can be hashed, so lists are tuples.
    """
    extra = {
        "namespace": output.dataset.namespace,
        "name": output.dataset.name,
        "table": min((link.name for link in output.symlinks if link.type == "TABLE"), default=None),
        "lifecycle": output.lifecycle,
        "row_count": output.statistics and output.statistics.row_count,
        "size": output.statistics and output.statistics.size,
        "columns": tuple(field.name for field in output.schema[:_MOST_COLUMNS]) or None,
        "application_ids": application_ids(lineage) or None,
    }
    return {key: value for key, value in extra.items() if value is not None}


def asset_uri(dataset: DatasetName) -> str | None:
    """Return the URI that an Airflow asset of a dataset has (AIP-60), None where there is no form for it.

    Paths in any store, topics, and tables on a host have one. Tables that have a catalog in place of a host, such as
    those of Glue, or of a warehouse whose files are not known, have none but BigQuery's.
    """
    identifier = storage_identifier(dataset)
    if identifier is None:
        return None
    has = dict(identifier.properties)
    if identifier.type == "path":
        # `file` is a store without an authority; its paths are absolute.
        store = has["store"] if "://" in has["store"] else f"{has['store']}://"
        path = has["path"]
        is_absolute = path.startswith("/")
        if not is_absolute and store.endswith("://"):
            return None
        return _uri(store, path if is_absolute else f"/{path}")
    if identifier.type == "topic":
        return _uri(f"{has['system']}://{has['brokers']}", f"/{has['topic']}")
    path = "/" + has["table"].replace(".", "/")
    if "hosts" in has:
        instance = f"/{has['instance']}" if "instance" in has else ""
        return _uri(f"{has['system']}://{has['hosts']}", f"{instance}{path}")
    return _uri("bigquery:/", path) if has["catalog"] == "bigquery" else None


def _uri(beginning: str, path: str) -> str | None:
    return beginning + quote(path, _KEPT, errors="surrogatepass") if beginning.isascii() else None


def _named_asset(events: Any, uri: str) -> Any:
    """Return the asset of a URI by the name that Airflow knows it by, else by its URI."""
    from airflow.providers.common.compat.sdk import Asset

    try:
        # An empty one of the same kind: the task's own would make an event of what it is asked for.
        return type(events)()[Asset.ref(uri=uri)].key.to_asset()
    except Exception:
        return Asset(uri=uri)
