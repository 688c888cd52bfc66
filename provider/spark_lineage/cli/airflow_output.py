"""What a command does before it imports Airflow: it says who asks, and keeps Airflow's log out of its own answer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

# Where Airflow 3 looks for connections depends on it; without it, a process that is no task sees none of the database.
_CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"
_LEVEL = "AIRFLOW__LOGGING__LOGGING_LEVEL"


@contextlib.contextmanager
def airflow_on_stderr() -> Iterator[None]:
    """Have Airflow read connections as its own command does (``airflow connections get``), and log warnings alone.

    They go to standard error: Airflow takes what is standard output when it is imported, and keeps it.
    """
    os.environ.setdefault(_CONTEXT, "server")
    os.environ.setdefault(_LEVEL, "WARNING")
    with contextlib.redirect_stdout(sys.stderr):
        yield
