"""Makes Airflow asset events for the outputs that a task has really written, so that they trigger other DAGs.

Airflow registers asset events of tasks that succeed, and of no others. An asset that is unknown before the task runs
needs an alias: ``outlets=[AssetAlias("orders")]``. For an asset that is an outlet itself Airflow makes an event anyhow,
written or not; the listener adds how it was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_lineage.listeners.listener import Event, JobExecutionStatusEvent, TaskListener
from spark_lineage.merge.lineage import DatasetLineage, TaskLineage
from spark_lineage.naming.identity import DatasetName, storage_identifier

_WRITING_NOTHING = frozenset({"ALTER", "RENAME"})
# They would end the path, or begin an escape. All else stays as it is: Airflow compares URIs as texts.
_ESCAPES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})


class AssetListener(TaskListener):
    """For ``job_status_listeners``; what has no URI of an asset, or no way to Airflow, is logged."""

    def on_event(self, event: Event) -> None:
        """Add the outputs of a task that has succeeded."""
        if not isinstance(event, JobExecutionStatusEvent) or not event.is_end or event.lineage is None:
            return
        if event.new_status != "FINISHED":
            self.context.logger.info("No asset events: Airflow accepts only those of a task that succeeds.")
            return
        without = [
            f"{output.dataset.namespace} {output.dataset.name}"
            for output in written_outputs(event.lineage)
            if not self._add(output, event)
        ]
        if without and not self.context.outlets.has_aliases:
            self.context.logger.info(
                "%d outputs make no asset event: give the task outlets=[AssetAlias('a name of yours')].", len(without)
            )
        elif without:
            self.context.logger.info("There is no asset for %s", ", ".join(without))

    def _add(self, output: DatasetLineage, event: JobExecutionStatusEvent) -> bool:
        uri = asset_uri(output.dataset)
        try:
            return uri is not None and self.context.outlets.add(uri, _extra(output, event))
        except ValueError as error:
            # The provider of its scheme wants more of a URI, or it is too long.
            self.context.logger.info("Airflow takes no asset %s: %s", uri, error)
            return False


def written_outputs(lineage: TaskLineage) -> Iterator[DatasetLineage]:
    """Return the outputs that have other content than before, as far as that is certain.

    Those that were only altered or renamed are none of them, nor those of which Spark's word alone says that they were
    written (``unconfirmed``). A table that was made empty, or emptied, is one.
    """
    unconfirmed = set(lineage.unconfirmed)
    for output in lineage.outputs:
        if output.dataset not in unconfirmed and (output.writes or output.lifecycle not in _WRITING_NOTHING):
            yield output


def _extra(output: DatasetLineage, event: JobExecutionStatusEvent) -> dict[str, Any]:
    """Return what the asset event says besides: names as OpenLineage has them, and numbers where Spark counted."""
    extra = {
        "namespace": output.dataset.namespace,
        "name": output.dataset.name,
        "table": min((link.name for link in output.symlinks if link.type == "TABLE"), default=None),
        "lifecycle": output.lifecycle,
        "row_count": output.statistics and output.statistics.row_count,
        "size": output.statistics and output.statistics.size,
        "application_ids": list(event.application_ids) or None,
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


def _uri(beginning: str, path: str) -> str:
    return beginning + path.translate(_ESCAPES)
