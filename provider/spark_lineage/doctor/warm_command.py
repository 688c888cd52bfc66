"""Make an archive of the classes that a driver with the listener loads, so that it starts faster.

Run it where tasks run, as their user, or while their image is built: it takes half a minute and 200 MB. Tasks in
client mode use it as long as Java, Spark and the jar of the listener stay the same.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_line
from spark_lineage.doctor.command import setup_of


def add(commands: Any) -> None:
    """Add ``warm`` to the command."""
    warm = commands.add_parser("warm", help="make drivers start faster", description=__doc__)
    warm.add_argument("--spark-conn-id", default="spark_default", metavar="ID", help="default: %(default)s")
    warm.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    with airflow_on_stderr():
        # On purpose here: they import Airflow, which takes seconds.
        from spark_lineage.inject.class_archive import NoArchiveError, archives, make_archive
        from spark_lineage.inject.installation import InstallationNotFoundError, PropertiesFileError
        from spark_lineage.inject.properties import JarNotFoundError

        setup = setup_of(arguments.spark_conn_id)
        try:
            archive = make_archive(setup.submitter, setup.settings)
        except (InstallationNotFoundError, JarNotFoundError, NoArchiveError, PropertiesFileError) as error:
            raise InputError(f"no archive can be made: {error}") from error
    sizes = archives(archive.parent)
    print_line(f"{archive}: {sizes.pop(archive) / 1e6:.0f} MB, made in {time.monotonic() - began:.0f} s")
    for other, size in sorted(sizes.items()):
        print_line(f"{other}: {size / 1e6:.0f} MB, of another Java, Spark or listener; remove it if that is gone")
    return 0
