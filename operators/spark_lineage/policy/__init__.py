"""A cluster policy that gives the tasks of ``SparkSubmitOperator`` lineage, without a change to their DAGs.

One line in ``airflow_local_settings.py``: ``from spark_lineage.policy import task_policy``. Every process of Airflow
imports that file: at its top, this module imports the standard library alone.
"""

from __future__ import annotations

import copy
import copyreg
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from inspect import unwrap
from types import new_class
from typing import Any

log = logging.getLogger(__name__)

_STOCK = "airflow.providers.apache.spark.operators.spark_submit"


def task_policy(task: Any) -> None:
    """Give a task lineage, if its operator is a ``SparkSubmitOperator`` and ``policy_rules`` do not exclude it.

    Airflow calls it for each task of a parsed DAG, in the DAG processor and on the worker. A task stays as it is if it
    has lineage already, or if something goes wrong.

    :param task: an operator, or a ``MappedOperator``
    """
    # A DAG file that has not imported it has no such task.
    stock = sys.modules.get(_STOCK)
    try:
        if stock is None or not issubclass(task.operator_class, stock.SparkSubmitOperator):
            return
        if (made := with_lineage(task.operator_class)) is not None and _is_wanted(task):
            _convert(task, made)
    except Exception as error:
        log.warning("The task %s is left without lineage: %s", getattr(task, "task_id", task), error)
        log.debug("The task is left without lineage, because:", exc_info=True)


@lru_cache(maxsize=256)
def with_lineage(operator: type[Any]) -> type[Any] | None:
    """Return a subclass of an operator that has lineage; None where it has some already, or refuses it.

    In its method resolution order ``LineageSparkSubmitOperator`` comes before the operator, and calls ``super()``
    wherever it overrides a method. So the user's ``execute``, ``on_kill`` and ``_get_hook`` run within the lineage
    session, as those of ``SparkSubmitOperator`` do; replacing methods of the stock class would reach each task of the
    process, and miss the methods that subclasses override. The name stays the user's: it selects tasks in the UI and
    in settings.

    A class refuses by ``lineage_enabled = False``, and by any other attribute or argument of a name that
    ``LineageSparkSubmitOperator`` adds to the stock operator, such as ``get_openlineage_facets_on_complete``.
    """
    from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator as Ours

    if issubclass(operator, Ours):
        return None
    own = [one for one in operator.__mro__ if one not in Ours.__mro__]
    names = {name for one in own for name in (*vars(one), *_parameters(one))}
    if taken := names & _own_names():
        log.info("%s has no lineage by the policy: it has %s of its own", operator.__name__, ", ".join(sorted(taken)))
        return None
    # What the operator has taken out of the stock operator's stays as the DAG says it.
    others = {*sys.modules[_STOCK].SparkSubmitOperator.template_fields, *operator.template_fields}
    added = [name for name in Ours.template_fields if name not in others]
    namespace = {
        **{name: getattr(operator, name) for name in ("__module__", "__qualname__", "__doc__")},
        "template_fields": (*operator.template_fields, *added, "lineage_by"),
        "operator_extra_links": (*operator.operator_extra_links, *Ours.operator_extra_links),
        # What the rendered task shows.
        "lineage_by": __name__,
    }
    meta: Any = type(operator)
    made: type[Any] = new_class(
        operator.__name__, (operator,), {"metaclass": _metaclass(meta)}, lambda body: body.update(namespace)
    )
    return made


@lru_cache(maxsize=8)
def _metaclass(meta: Any) -> type[Any]:
    """Return the metaclass of classes with lineage, whose operators have this one.

    The operator is their only base: Python lets an object change its class only for one of the same layout, and
    with a second base the layout would differ from that of an operator that begins with a mixin.
    """
    from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator as Ours

    class WithLineage(meta):  # type: ignore[misc]
        def mro(self) -> list[type[Any]]:
            made, *others = super().mro()
            return [made, Ours, *(one for one in others if one is not Ours)]

    # Of the module of its operator: elsewhere, such as in the environment of a PythonVirtualenvOperator that gets the
    # whole DAG, this package may be missing. Copies within a process keep the class.
    copyreg.pickle(WithLineage, lambda made: (copy.copy, made.__bases__))
    return WithLineage


@lru_cache(maxsize=1)
def _own_names() -> frozenset[str]:
    """The names of attributes and arguments that ``LineageSparkSubmitOperator`` has beyond the stock operator."""
    from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator as Ours

    stock = set(dir(sys.modules[_STOCK].SparkSubmitOperator))
    return frozenset({*vars(Ours), *_parameters(Ours)} - stock - {"self", "kwargs"})


def _parameters(operator: type[Any]) -> Iterable[str]:
    # `signature` takes as long as the rest of the policy.
    code = getattr(unwrap(vars(operator).get("__init__", object)), "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _convert(task: Any, made: type[Any]) -> None:
    from spark_lineage.settings import ARGUMENTS

    # A stock task does not defer, whatever the default of the installation is.
    if (arguments := getattr(task, "partial_kwargs", None)) is not None:
        arguments["deferrable"] = False
        task.template_fields, task.operator_extra_links = made.template_fields, made.operator_extra_links
        task.operator_class = made
    elif taken := _own_names() & vars(task).keys():
        log.info("%s has no lineage by the policy: it has %s of its own", task.task_id, ", ".join(sorted(taken)))
    else:
        vars(task).update(dict.fromkeys(ARGUMENTS), deferrable=False)
        task.__class__ = made


def _is_wanted(task: Any) -> bool:
    from airflow.providers.common.compat.sdk import conf

    rules = _rules(conf.get("spark_lineage", "policy_rules", fallback=""))
    if not rules:
        return True
    given: Mapping[str, Any] = getattr(task, "partial_kwargs", None) or vars(task)
    defaults = getattr(task.dag, "default_args", None) or {}
    conn_id = given.get("_conn_id") or given.get("conn_id") or defaults.get("conn_id") or "spark_default"
    known = {"dag": [task.dag_id], "tag": task.dag.tags or (), "pool": [task.pool], "conn": [conn_id]}

    def fits(rule: str) -> bool:
        kind, _, pattern = rule.partition(":")
        return any(fnmatchcase(str(one), pattern) for one in known[kind])

    including = [one for one in rules if not one.startswith("!")]
    excluding = [one[1:] for one in rules if one.startswith("!")]
    return not any(map(fits, excluding)) and (not including or any(map(fits, including)))


@lru_cache(maxsize=8)
def _rules(written: str) -> Sequence[str]:
    from spark_lineage.settings.values import policy_rules

    return policy_rules(written, "[spark_lineage] policy_rules")
