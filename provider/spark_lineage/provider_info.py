"""What Airflow learns about this package through the ``apache_airflow_provider`` entry point.

The shape is that of ``airflow/provider_info.schema.json``, against which a test validates it.
"""

from __future__ import annotations

from dataclasses import fields
from textwrap import fill
from typing import Any

from spark_lineage.deliver.connection_types import connection_types
from spark_lineage.settings import Settings

VERSION = "0.1.0"
_OPERATORS = (
    *("archive", "bash", "databricks", "dataproc", "emr", "glue", "livy", "spark_kubernetes", "spark_pipelines"),
    *("spark_pyspark", "spark_sql", "spark_submit"),
)


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
                "python-modules": [f"spark_lineage.operators.lineage_{name}" for name in _OPERATORS],
            }
        ],
        "triggers": [
            {
                "integration-name": "Spark Lineage",
                "python-modules": ["spark_lineage.triggers.spark_application"],
            }
        ],
        "sensors": [
            {
                "integration-name": "Spark Lineage",
                "python-modules": ["spark_lineage.supervision.history_server"],
            }
        ],
        "hooks": [
            {
                "integration-name": "Spark Lineage",
                "python-modules": ["spark_lineage.atlas.hook", "spark_lineage.deliver.hooks"],
            }
        ],
        "connection-types": connection_types(),
        "extra-links": ["spark_lineage.task.links.SparkLink"],
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


def _options() -> dict[str, dict[str, Any]]:
    options = {
        one.name: _option(
            one.default, one.metadata["description"], one.metadata["example"], has_texts=one.type == "Required"
        )
        for one in fields(Settings)
    }
    # No settings: listeners and the naming read options of any name themselves.
    options["extra_names_code"] = _option(
        default=True,
        description="Whether the extra of a Spark connection may name code and files of the worker and the driver: "
        "``lineage_listeners``, ``openlineage_jar``, ``ndjson_listener_path`` and ``resolvers``. When False, these are "
        "read from this section, and from arguments of the operator, alone.",
        example="False",
    )
    options["ndjson_listener_path"] = _option(
        "",
        "File to which ``NdjsonListener`` appends: an absolute path of a local file system.",
        "/var/log/spark_lineage/events.ndjson",
    )
    options["resolvers"] = _option(
        "",
        "Classes that give datasets other names, separated by semicolons. See also ``hostnamePattern.<cluster>``, "
        "``hostnameList.<cluster>``, ``hostnameDefault`` and ``pathPattern.<label>`` in ``docs/naming.md``.",
        "our_package.naming.ShortNames",
    )
    return options


def _option(default: Any, description: str, example: str, *, has_texts: bool = False) -> dict[str, Any]:
    """Describe an option as Airflow's schema wants it.

    Airflow 2 formats ``default``: a brace in it would keep every ``airflow`` command from starting.

    :param has_texts: whether it may hold text although its default is a boolean
    """
    is_number = isinstance(default, float)
    return {
        "description": fill(description, 100) + "\n",
        "version_added": VERSION,
        "type": "boolean" if isinstance(default, bool) and not has_texts else "float" if is_number else "string",
        "example": example,
        "default": f"{default:.12g}" if is_number else str(default) if isinstance(default, bool | str) else "",
    }
