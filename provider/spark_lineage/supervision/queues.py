"""Selects the YARN queue of a task by its user, owner or tag: a cluster policy, of which no operator knows.

One line in ``airflow_local_settings.py``: ``task_policy = queue_policy({"owner:etl": ["etl", "etl_fast"]})``. Every
process of Airflow imports that file: at its top, this module imports the standard library and our settings alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from spark_lineage.settings import SettingError

_STOCK = "airflow.providers.apache.spark.operators.spark_submit"
_KINDS = ("user", "owner", "tag")
_EVERYBODY = "*"
_FITS = 'give a map such as {"owner:etl": ["etl", "etl_fast"], "tag:finance": "finance", "*": "default"}'

Rules = Mapping[str, str | Sequence[str]]


def queue_policy(rules: Rules, *, conn_id: str = "*") -> Callable[[Any], None]:
    """Return a task policy that gives each ``SparkSubmitOperator`` its queue, and refuses one that names another.

    Rules that do not fit refuse all Spark tasks, not Airflow.

    :param rules: of each ``user:…``, ``owner:…``, ``tag:…`` or ``*`` the allowed queues, the default first
    :param conn_id: which Spark connections they are for, as a shell pattern
    """

    @cache
    def read() -> Mapping[str, tuple[str, ...]]:
        return _read(rules)

    def task_policy(task: Any) -> None:
        # A DAG file that has not imported it has no such task.
        stock = sys.modules.get(_STOCK)
        if stock is None or not issubclass(task.operator_class, stock.SparkSubmitOperator):
            return
        given = _given(task)
        if not fnmatchcase(str(given.get("conn_id") or "spark_default"), conn_id):
            return
        try:
            queue = _queue_of(task, given, read())
        except SettingError as error:
            from airflow.exceptions import AirflowClusterPolicyViolation

            raise AirflowClusterPolicyViolation(f"{task.dag_id}.{task.task_id}: {error}") from None
        if queue and hasattr(task, "partial_kwargs"):
            task.partial_kwargs["yarn_queue"] = queue
        elif queue:
            vars(task)["_yarn_queue"] = queue

    return task_policy


def _read(rules: Any) -> Mapping[str, tuple[str, ...]]:
    try:
        read = {":".join(map(str.strip, str(key).split(":", 1))): _queues(one) for key, one in rules.items()}
    except (ValueError, AttributeError, TypeError):
        raise SettingError(f"the rules of queue_policy are no map of lists of queues; {_FITS}") from None
    for key in read:
        kind, _, name = key.partition(":")
        if key != _EVERYBODY and (kind not in _KINDS or not name):
            raise SettingError(f"a rule of queue_policy, {key!r}, is neither user:…, owner:…, tag:… nor *; {_FITS}")
    return read


def _queues(value: Any) -> tuple[str, ...]:
    queues = (value,) if isinstance(value, str) else tuple(value)
    if isinstance(value, Mapping) or not queues or not all(isinstance(one, str) and one.strip() for one in queues):
        raise ValueError
    return tuple(one.strip() for one in queues)


def _given(task: Any) -> Mapping[str, Any]:
    """Return the arguments of a task as its DAG file has them; of a mapped one, those that are not mapped."""
    if (partial := getattr(task, "partial_kwargs", None)) is not None:
        mapped = getattr(task.expand_input, "value", None)
        is_mapped = isinstance(mapped, Mapping) and "yarn_queue" in mapped
        return {**(task.dag.default_args or {}), **partial, **({"yarn_queue": "of a mapped task"} if is_mapped else {})}
    own = vars(task)
    return {**own, **{name: own[f"_{name}"] for name in ("conn_id", "yarn_queue")}}


def _queue_of(task: Any, given: Mapping[str, Any], rules: Mapping[str, tuple[str, ...]]) -> str:
    """Return the queue of a task; empty where no rule is for it: of the user, of an owner, of a tag, of everyone.

    :raises SettingError: when the task names a queue that is not allowed
    """
    key = next((one for one in _keys(task, given) if one in rules), None)
    if key is None:
        return ""
    conf = given.get("conf")
    of_conf = conf.get("spark.yarn.queue") if isinstance(conf, Mapping) else None
    allowed, named = rules[key], str(given.get("yarn_queue") or of_conf or rules[key][0])
    # YARN takes a queue by its path as well.
    if named.removeprefix("root.") not in [one.removeprefix("root.") for one in allowed]:
        text = f"it names the YARN queue {named!r}, and the rule {key!r} allows {', '.join(allowed)}"
        raise SettingError(f"{text}: name one of them (yarn_queue, spark.yarn.queue), or none")
    return named


def _keys(task: Any, given: Mapping[str, Any]) -> Iterator[str]:
    principal = str(given.get("principal") or "").partition("@")[0].partition("/")[0]
    names = {
        "user": [str(given.get("proxy_user") or principal)],
        "owner": [one.strip() for one in str(task.owner).split(",")],
        "tag": sorted(map(str, task.dag.tags or ())),
    }
    yield from (f"{kind}:{name}" for kind in _KINDS for name in names[kind] if name)
    yield _EVERYBODY
