"""What Airflow learns about this package through the ``apache_airflow_provider`` entry point.

The shape is that of ``airflow/provider_info.schema.json``, against which a test validates it.
"""

from __future__ import annotations

from typing import Any, TypedDict

from spark_lineage.deliver.hooks.connection_types import connection_types

VERSION = "0.1.0"


class Option(TypedDict):
    """One option of ``[spark_lineage]``, as Airflow's schema wants it.

    Airflow 2 formats ``default``, so that a brace in it would keep every ``airflow`` command from starting.
    """

    description: str
    version_added: str
    type: str
    example: str | None
    default: str


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata: names, operators and the ``[spark_lineage]`` section."""
    return {
        "package-name": "airflow-provider-spark-lineage",
        "name": "Spark Lineage",
        "description": "One truthful OpenLineage job per Spark task: a drop-in for SparkSubmitOperator.",
        "versions": [VERSION],
        "integrations": [
            {
                "integration-name": "Spark Lineage",
                "external-doc-url": "https://github.com/spark-lineage/airflow-provider-spark-lineage",
                "tags": ["apache"],
            }
        ],
        "operators": [
            {
                "integration-name": "Spark Lineage",
                "python-modules": [
                    "spark_lineage.operators.lineage_archive",
                    "spark_lineage.operators.lineage_spark_submit",
                ],
            }
        ],
        "hooks": [
            {
                "integration-name": "Spark Lineage",
                "python-modules": ["spark_lineage.deliver.hooks.atlas", "spark_lineage.deliver.hooks.openlineage"],
            }
        ],
        "connection-types": connection_types(),
        "config": {
            "spark_lineage": {
                "description": (
                    "Lineage of Spark tasks (``LineageSparkSubmitOperator``). An argument of the operator comes\n"
                    "before the extra of its Spark connection, which comes before this section.\n"
                ),
                "options": _options(),
            }
        },
    }


def _options() -> dict[str, Option]:
    return {
        "lineage_enabled": _option(
            "boolean",
            "True",
            "Whether lineage is gathered. When False, the operator is a plain ``SparkSubmitOperator``.",
            example="False",
        ),
        "lineage_dir": _option(
            "string",
            "",
            "Directory in which the driver writes its lineage and the worker reads it: an absolute local path\n"
            "that both share. Each try gets a private directory (0700) below it.\n"
            "Empty: ``{AIRFLOW_HOME}/spark_lineage``.",
            example="/mnt/shared/spark_lineage",
        ),
        "openlineage_jar": _option(
            "string",
            "",
            "The OpenLineage listener for Spark: a path, a URL or a Maven coordinate. ``{scala}`` is the Scala\n"
            "version of the Spark found. A coordinate is fetched once from a Maven repository and kept in\n"
            "``jar_cache_dir``. Empty: ``io.openlineage:openlineage-spark_{scala}:1.53.0``.",
            example="/opt/jars/openlineage-spark_2.13-1.53.0.jar",
        ),
        "jar_cache_dir": _option(
            "string",
            "",
            "Directory for jars resolved from a coordinate or a URL.\n"
            "Empty: ``~/.cache/airflow-provider-spark-lineage``.",
            example="/var/cache/spark_lineage",
        ),
        "jar_timeout_seconds": _option(
            "integer",
            "120",
            "How long the first task may wait for the jar. After that its job runs without lineage.",
            example="30",
        ),
        "lineage_namespace": _option(
            "string",
            "",
            "OpenLineage namespace of the Spark application's own job.\n"
            "Empty: that of the Airflow OpenLineage provider.",
            example="analytics",
        ),
        "lineage_job_name": _option(
            "string",
            "",
            "Name of the Spark application's own OpenLineage job. Empty: ``{dag_id}.{task_id}.spark``.",
            example="orders.spark",
        ),
        "lineage_tags": _option(
            "string",
            "",
            "Tags of the Spark application's own job: a JSON object, or ``key:value`` pairs separated by semicolons.",
            example="team:finance;tier:gold",
        ),
        "lineage_required": _option(
            "boolean",
            "False",
            "Whether a task whose lineage could not be had fails. When False, the log says why, and the task succeeds.",
            example="True",
        ),
        "retention_days": _option(
            "integer",
            "30",
            "Age in days after which lineage files of earlier tries are removed.",
            example="7",
        ),
        "poll_interval_seconds": _option(
            "float",
            "5",
            "How often the lineage and event log of a running job are read, and its status asked for.",
            example="1.5",
        ),
        "collect_timeout_seconds": _option(
            "float",
            "60",
            "How long a task waits at its end until its lineage files and its event log were read. What was not read\n"
            "by then is missing in the lineage, which says so.",
            example="10",
        ),
        "tracking_interval_seconds": _option(
            "float",
            "3600",
            "The longest time between two RUNNING events of a task; new datasets are sent sooner.",
            example="600",
        ),
        "start_datasets": _option(
            "string",
            "inputs",
            "What the START of a run repeats of the last successful end of its task, so that its job keeps a graph\n"
            "while it runs: ``inputs``, ``all`` (a run that fails then leaves a version of outputs that it never\n"
            "wrote), or ``none``. Of a stream both sides are repeated, unless it is ``none``.",
            example="all",
        ),
        "event_log": _option(
            "boolean",
            "True",
            "Whether Spark's event log is read for what the listener does not tell. Where the job writes none, the\n"
            "driver is told to write a small one beside its lineage.",
            example="False",
        ),
        "granularity": _option(
            "string",
            "task",
            "``task``: one job for the task. ``path``: also a child job for each output. ``action``: also one for\n"
            "each Spark action.",
            example="path",
        ),
        "map_index_in_job_name": _option(
            "boolean",
            "False",
            "Whether each index of a mapped task is a job of its own, called ``dag_id.task_id[index]``. Otherwise\n"
            "they are runs of one job, whose graph is that of the index that ended last.",
            example="True",
        ),
        "max_event_bytes": _option(
            "integer",
            "1000000",
            "Size above which an event loses detail, never a dataset, and says so in a facet.",
            example="500000",
        ),
        "job_status_listeners": _option(
            "string",
            "",
            "Class paths of listeners that are told when a job is created, how its status changes, and its lineage at\n"
            "the end, separated by semicolons.",
            example="spark_lineage.listeners.asset_listener.AssetListener",
        ),
        "catalog_modification_listeners": _option(
            "string",
            "",
            "Class paths of listeners that are told which tables, views and databases a task created, altered,\n"
            "renamed or dropped, separated by semicolons.",
            example="spark_lineage.listeners.logging_listener.LoggingListener;our_package.Glossary",
        ),
        "listener_timeout_seconds": _option(
            "float",
            "5",
            "How long a task waits at its end for all its listeners together. What was not delivered by then is\n"
            "counted and logged.",
            example="1",
        ),
        "openlineage_conn_id": _option(
            "string",
            "",
            "Connections of type ``openlineage`` that the events of a task are sent to, separated by semicolons.\n"
            "Without one they go where the OpenLineage provider of Airflow sends its own.",
            example="marquez;data_rentgen",
        ),
        "driver_openlineage_conn_id": _option(
            "string",
            "",
            "Connection of type ``openlineage`` that the Spark driver itself sends its raw events to, besides the\n"
            "file that lineage is collected from.",
            example="marquez_raw",
        ),
        "delivery_timeout_seconds": _option(
            "float",
            "5",
            "How long a task waits at most until the backends have taken its events. What they have not taken by then\n"
            "stays in the outbox.",
            example="2",
        ),
        "outbox_dir": _option(
            "string",
            "",
            "Absolute path of the directory that events wait in until a backend has taken them. Empty:\n"
            "``spark_lineage_outbox`` in the home of Airflow.",
            example="/var/lib/airflow/outbox",
        ),
        "outbox_max_bytes": _option(
            "float",
            "500000000",
            "How many bytes of events the outbox holds at most.",
            example="100000000",
        ),
        "redaction_patterns": _option(
            "string",
            "",
            "Regular expressions (RE2), one a line: what they match is a secret, and masked wherever secrets are.\n"
            "With groups, only what they match.",
            example="ACME-[0-9]{8}",
        ),
        "ndjson_listener_path": _option(
            "string",
            "",
            "File to which ``NdjsonListener`` appends: an absolute path of a local file system.",
            example="/var/log/spark_lineage/events.ndjson",
        ),
        "resolvers": _option(
            "string",
            "",
            "Classes that give datasets other names, separated by semicolons. See also ``hostnamePattern.<cluster>``,\n"
            "``hostnameList.<cluster>``, ``hostnameDefault`` and ``pathPattern.<label>`` in ``docs/naming.md``.",
            example="our_package.naming.ShortNames",
        ),
    }


def _option(kind: str, default: str, description: str, *, example: str | None = None) -> Option:
    return {
        "description": description + "\n",
        "version_added": VERSION,
        "type": kind,
        "example": example,
        "default": default,
    }
