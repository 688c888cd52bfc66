"""What a command does before it imports Airflow: it says who asks, and keeps standard output for its own answer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

# Where Airflow 3 looks for connections depends on it; without it, a process that is no task sees none of the database.
_CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"


@contextlib.contextmanager
def airflow_on_stderr() -> Iterator[None]:
    """Have Airflow read connections as its own command does (``airflow connections get``), and log to standard error.

    It takes what is standard output when it is imported, and keeps it.
    """
    os.environ.setdefault(_CONTEXT, "server")
    with contextlib.redirect_stdout(sys.stderr):
        yield
