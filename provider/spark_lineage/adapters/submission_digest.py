"""Identifies what an operator submits, so that what is kept of a run is used for the same program alone."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from spark_lineage.inject.task_injection import files_of_program
from spark_lineage.launch.directory import without_scheme

# The names in templates that differ from run to run; a user's choice (`params`, `var`, `dag_run.conf`) does not.
_OF_THE_RUN = re.compile(
    r"\b(?:ds|ts|dag_run(?!\.conf)|run_id|ti|task_instance|task_instance_key_str|logical_date|execution_date|macros"
    r"|\w*data_interval\w*|(?:ds|ts|prev|next|yesterday|tomorrow)_\w+|triggering_\w+|inlet_events|outlet_events)\b"
)
_TEMPLATE = re.compile(r"\{[{%]")
# The arguments that decide what is run, and are not templates; `_conf` is that of the operator of Spark SQL.
_NO_TEMPLATES = ("_java_class", "_conn_id", "_conf")
# Larger programs are known by their size.
_MAX_PROGRAM_BYTES = 32 * 1024 * 1024


def submission_digest(task: Any) -> str:
    """Return the digest of what an operator submits: its templated arguments, and the program where it is a local file.

    A template that differs in each run counts by its text, others by their rendered value.
    """
    # The running task is a rendered copy of the DAG's; a mapped task has only this one.
    dag = getattr(task, "dag", None)
    of_dag = dag.task_dict.get(task.task_id) if dag is not None else None
    original = of_dag if type(of_dag) is type(task) else task
    submitted = {
        name: _identity(getattr(original, name, None), getattr(task, name, None)) for name in task.template_fields
    }
    submitted |= {name: getattr(task, name, None) for name in _NO_TEMPLATES}
    submitted["program"] = _program(task)
    # A value that is no JSON counts by its type: the text of an object may hold its address.
    text = json.dumps(submitted, sort_keys=True, default=lambda value: type(value).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(original: Any, rendered: Any) -> Any:
    if isinstance(original, str):
        is_chosen = _TEMPLATE.search(original) and not _OF_THE_RUN.search(original)
        return rendered if is_chosen and isinstance(rendered, str) else original
    if isinstance(original, Mapping):
        by_key = rendered if isinstance(rendered, Mapping) else {}
        return {str(key): _identity(value, by_key.get(key)) for key, value in original.items()}
    if isinstance(original, list | tuple):
        is_alike = isinstance(rendered, list | tuple) and len(rendered) == len(original)
        return [_identity(one, other) for one, other in zip(original, rendered if is_alike else original, strict=True)]
    return original


def is_known(task: Any) -> bool:
    """Whether the digest has the content of the program: files elsewhere may change under their names.

    Files that a command, a manifest or the parameters of a service name are not in the digest.
    """
    named = _named(task)
    return bool(getattr(task, "sql", None) or named) and all(Path(without_scheme(name)).is_file() for name in named)


def _named(task: Any) -> list[str]:
    """Return the program of a task and its Python files; a partial function or a callable object has no file."""
    function = getattr(task, "python_callable", None)
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    application = str(getattr(task, "application", None) or getattr(code, "co_filename", ""))
    py_files = str(getattr(task, "py_files", None) or "").split(",") if application else []
    return [name.strip().partition("#")[0] for name in (application, *py_files) if name.strip()]


def _program(task: Any) -> str:
    """Return the digest of the program's files that are on this machine, with what Python imports from beside them."""
    named = _named(task)
    found = list[tuple[str, str]]()
    # The arguments have the names of files elsewhere.
    for path in files_of_program([*named, str(getattr(task, "properties_file", None) or "")]):
        with suppress(OSError):
            size = path.stat().st_size
            content = str(size) if size > _MAX_PROGRAM_BYTES else hashlib.sha256(path.read_bytes()).hexdigest()
            # The whole path differs where each version of a DAG has a directory of its own.
            home = Path(without_scheme(named[0])).parent if named else path.parent
            found.append((os.path.relpath(path, home), content))
    # A directory has no order that lasts.
    return hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest() if found else ""
