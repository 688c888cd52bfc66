"""Gives a dataset of OpenLineage the URI that an Airflow asset of it has: the way back from Airflow's own translation.

The forms are those of AIP-60 and of the providers that define them (``asset-uris``): ``file:///path``,
``s3://bucket/key``, ``postgres://host:port/database/schema/table``, ``bigquery://project/dataset/table``. The listener
of Spark has the same parts in namespaces and names.
"""

from __future__ import annotations

from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.storage import storage_identifier

# They would end the path, or begin an escape. All else stays as it is: Airflow compares URIs as texts.
_ESCAPES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})
_BIGQUERY = "bigquery"


def asset_uri(dataset: DatasetName) -> str | None:
    """Return the URI of a dataset, None where there is no form for it.

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
    return _uri("bigquery:/", path) if has["catalog"] == _BIGQUERY else None


def _uri(beginning: str, path: str) -> str:
    return beginning + path.translate(_ESCAPES)
