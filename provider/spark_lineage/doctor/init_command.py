"""Print the lines that connect Airflow to a backend, or write them to new files: connection, transport and policy.

No password is printed or written: the connection reads it from an environment variable.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from spark_lineage.cli.output import REPEATED, InputError, print_note
from spark_lineage.deliver.connection_types import ATLAS_KEYS
from spark_lineage.deliver.connections import (
    BY_CONNECTION,
    ConnectionFields,
    base_url_of,
    exchange_config,
    kafka_config,
    transport_config,
)
from spark_lineage.launch.directory import write_new
from spark_lineage.secrets.redaction import redact_value
from spark_lineage.secrets.secret_keys import MASK

_NOT_ALL = 1
_ATLAS = "atlas"
# The keys of the extra for each option, as docs/connections.md has them.
_BACKENDS: Mapping[str, Mapping[str, str]] = {
    "marquez": {"kind": "marquez"},
    "data-rentgen": {"endpoint": "v1/openlineage", "compression": "gzip"},
    "datahub": {"endpoint": "openapi/openlineage/api/v1/lineage"},
    "openmetadata": {"endpoint": "api/v1/openlineage/lineage"},
    "http": {},
    "kafka": {"kind": "kafka"},
    _ATLAS: {},
}
_CONN_ID = re.compile(r"[A-Za-z]\w*", re.ASCII)
_POLICY = """\
import contextlib

with contextlib.suppress(ModuleNotFoundError):
    from spark_lineage.policy import task_policy
"""


class _File(NamedTuple):
    """Lines for a file of Airflow, and what they are for."""

    name: str
    purpose: str
    lines: str


def add(commands: Any) -> None:
    """Add ``init`` to the command."""
    init = commands.add_parser(
        "init", help="print or write the lines that connect Airflow to a backend", description=__doc__
    )
    backends = init.add_mutually_exclusive_group(required=True)
    for name in _BACKENDS:
        target = "BROKERS" if name == "kafka" else "URL"
        backends.add_argument(f"--{name}", metavar=target, help="with --extra topic=NAME" if name == "kafka" else None)
    init.add_argument("--conn-id", metavar="ID", help="of the Airflow connection; default: the name of the backend")
    init.add_argument("--key", action="store_true", help="the backend wants a password, a token or an API key")
    init.add_argument("--extra", **REPEATED, metavar="KEY=VALUE", help="of the connection's extra, repeatable")
    text = "AIRFLOW_HOME: write new files there; a file that exists stays as it is, and its lines are printed"
    init.add_argument("--write", type=Path, metavar="DIR", help=text)
    init.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    given = {name: vars(arguments)[name.replace("-", "_")] for name in _BACKENDS}
    backend, target = next((name, each) for name, each in given.items() if each is not None)
    conn_id = arguments.conn_id or backend.replace("-", "_")
    if not _CONN_ID.fullmatch(conn_id):
        raise InputError(f"--conn-id {conn_id!r} makes no name of an environment variable: use letters, digits and _")
    connection = _connection(backend, target, conn_id, arguments)
    files = (
        _File("spark-lineage.sh", "environment of every process of Airflow", _environment(connection)),
        _File("config/airflow_local_settings.py", "lineage for all Spark operators; optional", _POLICY),
    )
    left = list(files if arguments.write is None else _write(arguments.write, files))
    for file in left:
        print(f"# {file.name}: {file.purpose}\n{file.lines}")  # noqa: T201
    print_note(f"Load the lines into the shell, then run: spark-lineage doctor --conn-id {conn_id}")
    return _NOT_ALL if left and arguments.write else 0


def _connection(backend: str, target: str, conn_id: str, arguments: argparse.Namespace) -> ConnectionFields:
    """Return the connection, with ``***`` for its password.

    :raises InputError: for a secret among the keys of the extra
    :raises SettingError: for fields that no event can be sent with
    """
    scheme, separator, rest = target.rpartition("://")
    authority, slash, path = rest.partition("/")
    userinfo, _, host = authority.rpartition("@")
    login, _, password = userinfo.partition(":")
    if password:
        print_note("The password of the URL is left out. Use --key: other users of this machine see a command line.")
    fields = ConnectionFields(
        conn_id,
        conn_type=_ATLAS if backend == _ATLAS else "openlineage",
        host=f"{scheme}{separator}{host}{slash}{path}",
        login=unquote(login),
        password=MASK if userinfo or arguments.key else "",
        extra={**_BACKENDS[backend], **_extra(arguments.extra)},
    )
    _check(fields)
    return fields


def _check(fields: ConnectionFields) -> None:
    """Read the fields as a task does, and refuse to show a secret among the keys of the extra."""
    if fields.conn_type != _ATLAS:
        transport_config(fields)
    elif fields.text("kind") == "kafka":
        kafka_config(fields, default_topic="ATLAS_HOOK")
    else:
        fields.check_keys(ATLAS_KEYS)
        base_url_of(fields)
        exchange_config(fields)
    shown = json.loads(json.dumps(_json(fields)).replace("{password}", MASK))
    if redact_value(shown) != shown:
        raise InputError("a key of the extra holds what nobody should see; put {password} in its place, and add --key")


def _extra(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the keys of the extra; a value that is a JSON object stays one."""
    try:
        given = dict(pair.split("=", 1) for pair in pairs)
        return {key: json.loads(value) if value.startswith("{") else value for key, value in given.items()}
    except ValueError as error:
        raise InputError("--extra wants KEY=VALUE; a VALUE with braces is a JSON object") from error


def _json(fields: ConnectionFields) -> dict[str, Any]:
    return {key: value for key, value in asdict(fields).items() if value and key != "conn_id"}


def _environment(fields: ConnectionFields) -> str:
    conn_id, variable = fields.conn_id, f"{fields.conn_id.upper()}_PASSWORD"
    connection = shlex.quote(json.dumps(_json(fields)))
    lines = []
    if fields.password:
        lines.append(f'# {variable}: the password, token or key of {conn_id}, with \\ before each " and each \\')
        lines.append(f': "${{{variable}:?is not set}}"')
        connection = connection.replace(f'"{MASK}"', f'"\'"${variable}"\'"')
    lines.append(f"export AIRFLOW_CONN_{conn_id.upper()}={connection}")
    if fields.conn_type == _ATLAS:
        lines.append(f"export AIRFLOW__SPARK_LINEAGE__LINEAGE_CONN_ID={conn_id}")
    else:
        transport = {"type": BY_CONNECTION, "conn_id": conn_id}
        lines.append(f"export AIRFLOW__OPENLINEAGE__TRANSPORT={shlex.quote(json.dumps(transport))}")
    return "\n".join(lines) + "\n"


def _write(directory: Path, files: Sequence[_File]) -> Iterator[_File]:
    """Write the files that do not exist, and return the others, whose lines are to be added by hand."""
    if not directory.is_dir():
        raise InputError(f"there is no directory {directory}")
    for file in files:
        path = directory / file.name
        path.parent.mkdir(exist_ok=True)
        try:
            write_new(path, file.lines.encode(), 0o644)
        except FileExistsError:
            if path.is_file() and file.lines in path.read_text(errors="replace"):
                print_note(f"{path} has these lines already")
                continue
            print_note(f"{path} exists and stays as it is: add the lines of {file.name} to it")
            yield file
        else:
            print_note(f"{path} is written: {file.purpose}")
