"""A cluster policy that gives the tasks of Spark operators lineage, without a change to their DAGs.

``from spark_lineage.policy import task_policy`` in ``airflow_local_settings.py`` is all. Every process of Airflow
imports that file: at its top, this module imports the standard library and the log alone.
"""

from __future__ import annotations

import copy
import copyreg
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import import_module
from inspect import unwrap
from types import new_class
from typing import Any, NamedTuple

from spark_lineage.launch.log import Log

log = Log(__name__)


class Kind(NamedTuple):
    """A stock operator, that with lineage, and the connection that its tasks have by default."""

    stock: Any
    ours: Any
    conn_id: str


_STOCK = "airflow.providers.apache.spark.operators"
_AWS = "airflow.providers.amazon.aws.operators"
_OURS = "spark_lineage.operators"
_KINDS = (
    (f"{_STOCK}.spark_submit", "SparkSubmitOperator", "spark_default"),
    (f"{_STOCK}.spark_sql", "SparkSqlOperator", "spark_sql_default"),
    (f"{_STOCK}.spark_pyspark", "PySparkOperator", ""),
    (f"{_STOCK}.spark_pipelines", "SparkPipelinesOperator", "spark_default"),
    ("airflow.providers.apache.livy.operators.livy", "LivyOperator", "livy_default"),
    ("airflow.providers.cncf.kubernetes.operators.spark_kubernetes", "SparkKubernetesOperator", "kubernetes_default"),
    ("airflow.providers.databricks.operators.databricks", "DatabricksSubmitRunOperator", "databricks_default"),
    ("airflow.providers.databricks.operators.databricks", "DatabricksRunNowOperator", "databricks_default"),
    ("airflow.providers.google.cloud.operators.dataproc", "DataprocSubmitJobOperator", "google_cloud_default"),
    ("airflow.providers.google.cloud.operators.dataproc", "DataprocCreateBatchOperator", "google_cloud_default"),
    (f"{_AWS}.emr", "EmrServerlessStartJobOperator", "aws_default"),
    (f"{_AWS}.emr", "EmrContainerOperator", "aws_default"),
    (f"{_AWS}.emr", "EmrAddStepsOperator", "aws_default"),
    (f"{_AWS}.glue", "GlueJobOperator", "aws_default"),
)
# Most tasks of these run no Spark: they have lineage by ``with_lineage`` alone.
_ASKED_FOR = (("airflow.providers.standard.operators.bash", "BashOperator", ""),)
# The arguments and attributes that name the connection of a task.
_CONNECTIONS = (
    "_conn_id",
    "conn_id",
    "livy_conn_id",
    "_livy_conn_id",
    *("kubernetes_conn_id", "gcp_conn_id", "databricks_conn_id", "aws_conn_id"),
)


def task_policy(task: Any) -> None:
    """Give a task lineage, if it is of a kind that can have it, and ``policy_rules`` do not exclude it.

    These are the operators of the Spark provider, ``@task.pyspark``, and subclasses of them.

    Airflow calls it for each task of a parsed DAG, in the DAG processor and on the worker. A task stays as it is if it
    has lineage already, or if something goes wrong.

    :param task: an operator, or a ``MappedOperator``
    """
    _give(task, is_ruled=True)


def with_lineage(task: Any) -> Any:
    """Give one task lineage within a DAG file, whatever ``policy_rules`` say, and return it.

    A task stays as it is if it has lineage already, or if something goes wrong; the log of the DAG processor says why.

    :param task: an operator, a ``MappedOperator``, or what a decorated function returns
    """
    operator = getattr(task, "operator", task)
    if not _give(operator, is_ruled=False):
        log.warning(
            "The task %s is left without lineage: nothing is known of the lineage of %s",
            getattr(operator, "task_id", operator),
            type(operator).__name__,
        )
    return task


def _give(task: Any, *, is_ruled: bool) -> bool:
    """Give a task lineage, if it can have it; return whether it is of a kind that can.

    :param is_ruled: whether ``policy_rules`` may exclude it
    """
    try:
        kind = _kind_of(task.operator_class, is_ruled=is_ruled)
        if kind is None:
            return False
        if (made := _made_of(task.operator_class)) is not None and (not is_ruled or _is_wanted(task, kind)):
            _convert(task, made, kind)
    except Exception as error:
        log.warning("The task %s is left without lineage: %s", getattr(task, "task_id", task), error)
        log.debug("The task is left without lineage, because:", exc_info=True)
    return True


@lru_cache(maxsize=256)
def _made_of(operator: Any) -> type[Any] | None:
    """Return a subclass of an operator that has lineage; None where it has some already, or refuses it.

    In its method resolution order our operator of its kind comes before the operator, and calls ``super()``
    wherever it overrides a method. So the user's ``execute``, ``on_kill`` and ``_get_hook`` run within the lineage
    session, as those of the stock operator do; replacing methods of the stock class would reach each task of the
    process, and miss the methods that subclasses override. The name stays the user's: it selects tasks in the UI and
    in settings.

    A class refuses by ``lineage_enabled = False``, and by any other attribute or argument of a name that ours adds to
    the stock operator, such as ``get_openlineage_facets_on_complete``.
    """
    kind = _kind_of(operator)
    if kind is None or issubclass(operator, kind.ours):
        return None
    ours = kind.ours
    own = [one for one in operator.__mro__ if one not in ours.__mro__]
    names = {name for one in own for name in (*vars(one), *_parameters(one))}
    if taken := names & _own_names(kind):
        log.info("%s has no lineage by the policy: it has %s of its own", operator.__name__, ", ".join(sorted(taken)))
        return None
    # What the operator has taken out of the stock operator's stays as the DAG says it.
    others = {*kind.stock.template_fields, *operator.template_fields}
    added = [name for name in ours.template_fields if name not in others]
    namespace = {
        **{name: getattr(operator, name) for name in ("__module__", "__qualname__", "__doc__")},
        "template_fields": (*operator.template_fields, *added, "lineage_by"),
        "operator_extra_links": (*operator.operator_extra_links, *ours.operator_extra_links),
        # What the rendered task shows.
        "lineage_by": __name__,
    }
    meta: Any = type(operator)
    made: type[Any] = new_class(
        operator.__name__, (operator,), {"metaclass": _metaclass(meta, ours)}, lambda body: body.update(namespace)
    )
    return made


@lru_cache(maxsize=8)
def _metaclass(meta: Any, ours: Any) -> type[Any]:
    """Return the metaclass of classes with lineage, whose operators have this one.

    The operator is their only base: Python lets an object change its class only for one of the same layout, and
    with a second base the layout would differ from that of an operator that begins with a mixin.

    :param ours: the operator with lineage: it comes first, with those of its bases that the user's operator has not
    """

    class WithLineage(meta):  # type: ignore[misc]
        def mro(self) -> list[type[Any]]:
            made, *others = super().mro()
            added = [one for one in ours.__mro__ if one not in others]
            return [made, *added, *others]

    # Of the module of its operator: elsewhere, such as in the environment of a PythonVirtualenvOperator that gets the
    # whole DAG, this package may be missing. Copies within a process keep the class.
    copyreg.pickle(WithLineage, lambda made: (copy.copy, made.__bases__))
    return WithLineage


@lru_cache(maxsize=256)
def _kind_of(operator: Any, *, is_ruled: bool = False) -> Kind | None:
    """Return the kind of an operator; None where it has no lineage, or no DAG file has imported such an operator."""
    for module, name, conn_id in _KINDS if is_ruled else (*_KINDS, *_ASKED_FOR):
        if (loaded := sys.modules.get(module)) is not None and issubclass(operator, stock := getattr(loaded, name)):
            ours = import_module(f"{_OURS}.lineage_{module.rpartition('.')[2]}")
            return Kind(stock, getattr(ours, f"Lineage{name}"), conn_id)
    return None


@lru_cache(maxsize=32)
def _own_names(kind: Kind) -> frozenset[str]:
    """The names of attributes and arguments that our operator has beyond the stock operator."""
    added = [one for one in kind.ours.__mro__ if one not in kind.stock.__mro__]
    names = {name for one in added for name in (*vars(one), *_parameters(one))}
    return frozenset(names - set(dir(kind.stock)) - kind.ours.stock_attributes - {"self", "kwargs"})


def _parameters(operator: type[Any]) -> Iterable[str]:
    # `signature` takes as long as the rest of the policy.
    code = getattr(unwrap(vars(operator).get("__init__", object)), "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _convert(task: Any, made: type[Any], kind: Kind) -> None:
    from spark_lineage.settings import ARGUMENTS

    names = _own_names(kind)
    # A stock task does not defer, whatever the default of the installation is.
    settled = {"deferrable": False} if "deferrable" in names else {}
    if (arguments := getattr(task, "partial_kwargs", None)) is not None:
        arguments |= settled
        task.template_fields, task.operator_extra_links = made.template_fields, made.operator_extra_links
        task.operator_class = made
    elif taken := names & vars(task).keys():
        log.info("%s has no lineage by the policy: it has %s of its own", task.task_id, ", ".join(sorted(taken)))
    else:
        vars(task).update(dict.fromkeys(ARGUMENTS), **settled)
        task.__class__ = made


def _is_wanted(task: Any, kind: Kind) -> bool:
    rules = _rules()
    if not rules:
        return True
    given: Mapping[str, Any] = getattr(task, "partial_kwargs", None) or vars(task)
    defaults = getattr(task.dag, "default_args", None) or {}
    named = (where.get(name) for where in (given, defaults) for name in _CONNECTIONS)
    conn_id = next(filter(None, named), kind.conn_id)
    known = {"dag": [task.dag_id], "tag": task.dag.tags or (), "pool": [task.pool], "conn": [conn_id]}

    def fits(rule: str) -> bool:
        kind, _, pattern = rule.partition(":")
        return any(fnmatchcase(str(one), pattern) for one in known[kind])

    including = [one for one in rules if not one.startswith("!")]
    excluding = [one[1:] for one in rules if one.startswith("!")]
    return not any(map(fits, excluding)) and (not including or any(map(fits, including)))


@lru_cache(maxsize=1)
def _rules() -> Sequence[str]:
    # Airflow looks for an option in five places, which takes a quarter of the time of the policy.
    from airflow.providers.common.compat.sdk import conf

    from spark_lineage.settings import policy_rules

    return policy_rules(conf.get("spark_lineage", "policy_rules", fallback=""), "[spark_lineage] policy_rules")
