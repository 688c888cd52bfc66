"""Selects the YARN queue of a task by its user, owner or tag: a cluster policy, of which no operator knows.

One line in ``airflow_local_settings.py``: ``task_policy = queue_policy({"owner:etl": ["etl", "etl_fast"]})``. Every
process of Airflow imports that file: at its top, this module imports the standard library and our settings alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from spark_lineage.settings.values import SettingError

_STOCK = "airflow.providers.apache.spark.operators.spark_submit"
_KINDS = ("user", "owner", "tag")
_EVERYBODY = "*"
_FITS = 'give a map such as {"owner:etl": ["etl", "etl_fast"], "tag:finance": "finance", "*": "default"}'


def queue_policy(rules: Any, *, conn_id: str = "*") -> Callable[[Any], None]:
    """Return a task policy that gives each ``SparkSubmitOperator`` its queue, and refuses one that names another.

    Rules that do not fit refuse all Spark tasks, not Airflow.

    :param rules: as ``queues_of`` reads them
    :param conn_id: which Spark connections they are for, as a shell pattern
    """

    @cache
    def read() -> Mapping[str, tuple[str, ...]]:
        return queues_of(rules)

    def task_policy(task: Any) -> None:
        # A DAG file that has not imported it has no such task.
        stock = sys.modules.get(_STOCK)
        if stock is None or not issubclass(task.operator_class, stock.SparkSubmitOperator):
            return
        given = _given(task)
        if not fnmatchcase(str(given.get("conn_id") or "spark_default"), conn_id):
            return
        try:
            if _is_mapped(task, "yarn_queue"):
                raise SettingError("its yarn_queue is mapped; name it in partial(), or not at all")  # noqa: TRY301
            if queue := _queue_of(task, given, read()):
                _submit_to(task, queue)
        except SettingError as error:
            from airflow.exceptions import AirflowClusterPolicyViolation

            raise AirflowClusterPolicyViolation(f"{task.dag_id}.{task.task_id}: {error}") from None

    return task_policy


def queues_of(value: Any) -> Mapping[str, tuple[str, ...]]:
    """Read the rules: of each ``user:…``, ``owner:…``, ``tag:…`` or ``*`` the allowed queues, the default first.

    :param value: a map, or its JSON
    :raises SettingError: when they are something else
    """
    try:
        read = json.loads(value) if isinstance(value, str) else value
        rules = {":".join(map(str.strip, str(key).split(":", 1))): _queues(one) for key, one in read.items()}
    except (ValueError, AttributeError, TypeError):
        raise SettingError(f"the rules of queue_policy are no map of lists of queues; {_FITS}") from None
    for key in rules:
        kind, _, name = key.partition(":")
        if key != _EVERYBODY and (kind not in _KINDS or not name):
            raise SettingError(f"a rule of queue_policy, {key!r}, is neither user:…, owner:…, tag:… nor *; {_FITS}")
    return rules


def choose_queue(
    rules: Mapping[str, tuple[str, ...]], named: str, *, user: str, owners: Sequence[str], tags: Sequence[str]
) -> str:
    """Return the queue of a task; empty where no rule is for it.

    The first rule counts, of the user, of an owner, of a tag, of everyone.

    :param named: the queue that the task asks for, empty for none
    :param user: who the job runs as on YARN, empty where the DAG file does not say it
    :raises SettingError: when the task asks for a queue that is not allowed
    """
    keys = [*_keys("user", [user]), *_keys("owner", owners), *_keys("tag", sorted(tags)), _EVERYBODY]
    key = next((one for one in keys if one in rules), None)
    if key is None:
        return ""
    allowed = rules[key]
    if not named:
        return allowed[0]
    if _plain(named) not in map(_plain, allowed):
        raise SettingError(
            f"it names the YARN queue {named!r}, and the rule {key!r} allows {', '.join(allowed)}: name one of them "
            "(yarn_queue, spark.yarn.queue), or none"
        )
    return named


def _queues(value: Any) -> tuple[str, ...]:
    queues = (value,) if isinstance(value, str) else tuple(value)
    if isinstance(value, Mapping) or not queues or not all(isinstance(one, str) and one.strip() for one in queues):
        raise ValueError
    return tuple(one.strip() for one in queues)


def _keys(kind: str, names: Sequence[str]) -> Iterator[str]:
    return (f"{kind}:{name}" for name in names if name)


def _plain(queue: str) -> str:
    # YARN takes a queue by its path as well.
    return queue.removeprefix("root.")


def _queue_of(task: Any, given: Mapping[str, Any], rules: Mapping[str, tuple[str, ...]]) -> str:
    conf = given.get("conf")
    of_conf = conf.get("spark.yarn.queue") if isinstance(conf, Mapping) else None
    principal = str(given.get("principal") or "").partition("@")[0].partition("/")[0]
    return choose_queue(
        rules,
        str(given.get("yarn_queue") or of_conf or ""),
        user=str(given.get("proxy_user") or principal),
        owners=[one.strip() for one in str(task.owner).split(",")],
        tags=[str(tag) for tag in task.dag.tags or ()],
    )


def _given(task: Any) -> Mapping[str, Any]:
    """Return the arguments of a task as its DAG file has them; of a mapped one, those that are not mapped."""
    if (partial := getattr(task, "partial_kwargs", None)) is not None:
        return {**(task.dag.default_args or {}), **partial}
    own = vars(task)
    return {**own, **{name: own[f"_{name}"] for name in ("conn_id", "yarn_queue")}}


def _is_mapped(task: Any, name: str) -> bool:
    """Whether an argument has another value for each index of a mapped task."""
    value = getattr(getattr(task, "expand_input", None), "value", None)
    return isinstance(value, Mapping) and name in value


def _submit_to(task: Any, queue: str) -> None:
    if (partial := getattr(task, "partial_kwargs", None)) is not None:
        partial["yarn_queue"] = queue
    else:
        vars(task)["_yarn_queue"] = queue
