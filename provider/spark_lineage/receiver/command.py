"""Receive the events of Spark drivers over HTTP, until SIGTERM, for tasks whose setting is receiver_conn_id."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from spark_lineage.cli.output import InputError, above_zero, airflow_on_stderr, print_note
from spark_lineage.receiver.service import Receiver
from spark_lineage.submission.received_events import DEFAULT_PORT, ENDPOINT, ReceiverService


def add(commands: Any) -> None:
    """Add ``receive`` to the command."""
    receive = commands.add_parser("receive", help="receive the events of Spark drivers over HTTP", description=__doc__)
    receive.add_argument("--host", default="127.0.0.1", help="address to listen on; default: %(default)s")
    receive.add_argument("--port", type=int, default=DEFAULT_PORT, help="default: %(default)s")
    receive.add_argument(
        "--root", type=Path, required=True, metavar="DIR", help="where the events are kept, a file for each application"
    )
    receive.add_argument(
        "--conn-id", required=True, metavar="ID", help="connection whose password is the secret, as that of the tasks"
    )
    receive.add_argument("--certfile", type=Path, metavar="PEM", help="certificate: listen with TLS")
    receive.add_argument("--keyfile", type=Path, metavar="PEM", help="its key, if it is not in the same file")
    receive.add_argument(
        "--retention-days", type=above_zero, default=30.0, metavar="N", help="remove older files; default: %(default)g"
    )
    receive.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    # On purpose here: they are not everywhere.
    try:
        from spark_lineage.receiver.server import KeptFiles, bound, server_of
    except ImportError as error:
        raise InputError(f"{error.name} is missing: pip install 'airflow-provider-spark-lineage[receiver]'") from error
    if arguments.root.exists() and not arguments.root.is_dir():
        raise InputError(f"{arguments.root} is not a directory")
    for file in filter(None, (arguments.certfile, arguments.keyfile)):
        if not os.access(file, os.R_OK):
            raise InputError(f"{file} cannot be read")
    if arguments.keyfile and not arguments.certfile:
        raise InputError("--keyfile is given without --certfile")
    files = KeptFiles(arguments.root, arguments.retention_days)
    try:
        listening = bound(arguments.host, [arguments.port])
    except (OSError, OverflowError) as error:
        raise InputError(f"{arguments.host}:{arguments.port}: {getattr(error, 'strerror', error)}") from error
    with listening:
        receiver = Receiver(_secret(arguments.conn_id), files.file_of)
        server = server_of(receiver, certfile=arguments.certfile, keyfile=arguments.keyfile)
        try:
            server.config.load()
        except OSError as error:
            # The error of ssl names no file.
            raise InputError(f"the certificate cannot be used: {error.strerror or error}") from error
        scheme, port = "https" if arguments.certfile else "http", listening.getsockname()[1]
        print_note(f"spark-lineage: listening on {scheme}://{arguments.host}:{port}{ENDPOINT}")
        server.run(sockets=[listening])
    return 0


def _secret(conn_id: str) -> bytes:
    with airflow_on_stderr():
        try:
            return ReceiverService.of(conn_id).secret
        except Exception as error:
            raise InputError(str(error)) from error
