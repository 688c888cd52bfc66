"""The Spark tasks of DAGs as Airflow serializes them: by class, by template fields, and by commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from spark_lineage.adapters.adapter import _ADAPTERS

# The template fields that tell a subclass of an operator whose provider is not here, and the one with what it runs.
_SERVICES = {
    "EmrAddStepsOperator": ("job_flow_id steps", "steps"),
    "EmrContainerOperator": ("virtual_cluster_id job_driver", "job_driver"),
    "EmrServerlessStartJobOperator": ("application_id job_driver", "job_driver"),
    "GlueJobOperator": ("script_location script_args", ""),
    "DataprocSubmitJobOperator": ("region job", "job"),
    "DataprocCreateBatchOperator": ("region batch", "batch"),
    "DataprocInstantiateInlineWorkflowTemplateOperator": ("region template", "template"),
    "DatabricksSubmitRunOperator": ("json databricks_conn_id", ""),
    "DatabricksRunNowOperator": ("json databricks_conn_id", ""),
    "DatabricksNotebookOperator": ("notebook_params databricks_conn_id", ""),
    "DatabricksTaskOperator": ("task_config databricks_conn_id", ""),
}
_COMMANDS = ("bash_command", "command", "cmds", "arguments")
_OURS = {"lineage_dir", "lineage_conn_id"}
_DISTINCT = 3
_SUBMIT = re.compile(
    r"""(?:^|[\s/"'(`=])spark[23]?-(?:submit|sql|pipelines|shell|class\s+org\.apache\.spark\.deploy\.SparkSubmit)(?=$|[\s"')`])"""
    r"""|\s-m\s*pyspark\.pipelines\.cli(?=\s)|(?:^|[\s/"'(`])pyspark(?:\s+-[^<]*)?\s*<"""
)
# A shell that runs what it reads; elsewhere it is the name of a package.
_SHELL = re.compile(r"(?:\S*/)?pyspark(?=$|\s)")
_PARTS = re.compile(r"[\n;&|]+")
# What names a program and does not run it, and what asks a running application.
_NAMES_IT = re.compile(
    r"\[|(?:\S*/)?(?:echo|printf|which|type|command\s+-v|\w*grep|p?kill|killall|ls|cat|head|tail|less|test|rm|cp|mv|ln|man|"
    r"tar|ch(?:mod|own)|mkdir|touch|diff|scp|rsync|journalctl|curl|wget|git|pip\d?|apt(?:-get)?|helm|aws\s+s3|"
    r"docker\s+(?:pull|build|push|tag)|kubectl\s+(?:get|logs|describe|delete|apply)|"
    r"(?:export|alias)(?!.*\$\()|find(?!.*-exec))\b"
)
# An option of the program itself comes behind it.
_ASKS = re.compile(
    r"\b(?:spark[23]?-\w+|pyspark)(?:\s+--?[\w-]+(?:[\s=]+[^\s-]\S*)?)*?\s+--(?:version|help|kill|status)(?=\s|$)"
)
_BEFORE = re.compile(r"(?:(?:\w+=\S*|!|if|while|then|do|else|sudo|exec|time|nohup|env)\s+)*")
# A here-document, the rest of the line that begins it, and what runs it; a shell expands one without quotes.
_DOCUMENT = re.compile(
    r"""(?<!<)<<-?[ \t]*(?P<quote>['"\\]?)(?P<end>\w+)['"]?(?P<rest>[^\n]*)\n(?P<text>.*?)(?:^\t*(?P=end)[ \t]*$|\Z)""",
    re.MULTILINE | re.DOTALL,
)
_RUNS_IT = re.compile(r"(?:^|[\s/(|;&])(?:(?:ba|da|z|k)?sh|ssh|source|python[\d.]*)(?=$|[\s<|;&)])")
_FILE = re.compile(r"""(?:>|\btee(?:\s+-a)?\s)\s*["']?(?:\S*/)?(?P<name>[\w.-]+)""")
_EXPANDED = re.compile(r"\$\([^)]*\)|`[^`]*`")
_COMMENT = re.compile(r"(?:^|\s)#[^\n]*")


@dataclass(frozen=True)
class SparkTask:
    """A task that runs Spark.

    :param stock: the qualified name of the operator with an adapter that it is, or derives from; empty for none
    :param fields: what is serialized of it, with the arguments of a mapped task
    """

    dag_id: str
    task_id: str
    operator: str
    module: str
    type: str
    stock: str
    fields: Mapping[str, Any]
    is_paused: bool
    dag: Mapping[str, Any]

    @property
    def has_lineage(self) -> bool:
        """Whether its operator is one with lineage."""
        return set(self.fields.get("template_fields", ())) >= _OURS

    @property
    def is_by_policy(self) -> bool:
        """Whether the policy, or ``with_lineage``, made it one."""
        return "lineage_by" in self.fields.get("template_fields", ())


def spark_tasks(data: Mapping[str, Any], *, is_paused: bool) -> Iterator[SparkTask]:
    """Return the Spark tasks of a serialized DAG."""
    dag = _plain(data.get("dag", {}))
    for task in dag.get("tasks", ()):
        fields = {**task, **task.get("partial_kwargs", {})}
        fields |= _expanded(task.get("expand_input", {}).get("value"))
        module, kind = task.get("_task_module", ""), task.get("task_type", "")
        names = set(task.get("template_fields", ()))
        stock = _stock(module, kind, names, task.get("template_ext", ()))
        if names >= _OURS or _is_spark(stock, module, kind, names, fields):
            name = task.get("_operator_name") or kind
            yield SparkTask(dag["dag_id"], task["task_id"], name, module, kind, stock, fields, is_paused, dag)


def _expanded(given: Any) -> dict[str, Any]:
    """Return the arguments of a mapped task: those of ``expand``, or of ``expand_kwargs`` where they are a list."""
    if isinstance(given, dict):
        return given
    found: dict[str, Any] = {}
    for one in given if isinstance(given, list) else ():
        for name, value in one.items() if isinstance(one, dict) else ():
            found.setdefault(name, []).append(value)
    return found


def _stock(module: str, kind: str, names: set[str], endings: Any) -> str:
    """Return the operator with an adapter that a task is of; a subclass has its template fields."""
    for stock in _ADAPTERS:
        within, _, name = stock.rpartition(".")
        provider = within.partition(".operators.")[0]
        decorated = kind == f"_{name.removesuffix('Operator')}DecoratedOperator"
        if (module.startswith(provider) and (kind == name or decorated)) or _is_like(stock, names, endings):
            return stock
    if module.startswith("airflow.providers.apache.spark.") and "Sensor" not in kind:
        # Of the provider's own, such as ``SparkJDBCOperator``.
        return next((one for one in _ADAPTERS if one.endswith(".SparkSubmitOperator")), "")
    return ""


def _is_like(stock: str, names: set[str], endings: Any) -> bool:
    fields, ext = _fields_of(stock)
    if len(fields) >= _DISTINCT or any("spark" in one for one in fields):
        return bool(fields) and fields <= names
    return bool(fields) and fields == names and bool(ext) and list(ext) == list(endings)


@cache
def _fields_of(stock: str) -> tuple[frozenset[str], tuple[str, ...]]:
    module, _, name = stock.rpartition(".")
    try:
        operator = getattr(import_module(module), name)
    except (ImportError, AttributeError):
        # Its provider is not installed here, and its own class is known by its name.
        return frozenset(), ()
    return frozenset(operator.template_fields), tuple(operator.template_ext)


def _is_spark(stock: str, module: str, kind: str, names: set[str], fields: Mapping[str, Any]) -> bool:
    if "Sensor" in kind:
        return False
    if commands := [_joined(fields[one]) for one in _COMMANDS if one in names and fields.get(one)]:
        return runs_spark(" ".join(commands))
    if names.intersection(_COMMANDS):
        return False
    for service, (wanted, payload) in _SERVICES.items():
        if kind.endswith(service) or set(wanted.split()) <= names:
            text = json.dumps(fields.get(payload), default=str).lower()
            # A template or a file says nothing of what it runs.
            is_other = isinstance(fields.get(payload), (list, dict)) and "spark" not in text
            return not is_other and "pythonshell" not in json.dumps(fields.get("create_job_kwargs"), default=str)
    return bool(stock) or (module.startswith("airflow.providers.") and "Spark" in kind)


def runs_spark(command: str) -> bool:
    """Whether a shell command submits a Spark program: one that only names ``spark-submit`` does not."""
    text = _DOCUMENT.sub(_run_of, _COMMENT.sub("", command.replace("\\\n", " ")))
    for begun, program in _commands(text):
        is_spark = _SUBMIT.search(begun) or _SHELL.match(program)
        if is_spark and not _ASKS.search(begun) and not _NAMES_IT.match(program):
            return True
    return False


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Return the commands of a text, each also from its program on."""
    for part in _PARTS.split(text):
        begun = part.strip().lstrip("({ ")
        yield begun, _BEFORE.sub("", begun, count=1)


def _run_of(document: re.Match[str]) -> str:
    """Return what a shell runs of a here-document: all that a shell reads, or a file has that a later command uses."""
    before, after = document.string[: document.start()], document.string[document.end() :]
    line = before.rpartition("\n")[2] + document["rest"]
    file = _FILE.search(line)
    is_used = file is not None and any(
        file["name"] in begun and not _NAMES_IT.match(program) for begun, program in _commands(after)
    )
    is_run = is_used or _RUNS_IT.search(line) is not None
    expanded = "" if document["quote"] else "\n".join(_EXPANDED.findall(document["text"]))
    # The mark stays: PySpark's shell reads one.
    return f"<<{document['end']}{document['rest']}\n{document['text'] if is_run else expanded}"


def _joined(value: Any) -> str:
    """Return a command; a list has its words, or the commands of a mapped task."""
    if not isinstance(value, list):
        return str(value)
    are_commands = any(isinstance(one, list) or " " in str(one) for one in value)
    return ("\n" if are_commands else " ").join(map(_joined, value))


def _plain(value: Any) -> Any:
    """Return what is serialized without the names of its types."""
    if isinstance(value, dict):
        if value.keys() == {"__var", "__type"}:
            return _plain(value["__var"])
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value
