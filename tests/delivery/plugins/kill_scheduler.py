"""Kills a scheduler at the worst moment: it has told its listeners of the end of a DAG run, and not yet stored it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from airflow.listeners import hookimpl
from airflow.sdk.plugins_manager import AirflowPlugin

# Listeners send from processes of their own.
SENT_SECONDS = 2


class Killer:
    """Kills once, at the end of the DAG whose id is in ``KILL_AT_THE_END_OF``."""

    @hookimpl(trylast=True)
    def on_dag_run_success(self, dag_run: Any, msg: str) -> None:
        mark = Path(os.environ["LIVE"], "killed_at_the_end")
        if dag_run.dag_id == os.environ.get("KILL_AT_THE_END_OF") and not mark.exists():
            mark.touch()
            time.sleep(SENT_SECONDS)
            os.killpg(os.getpgid(0), signal.SIGKILL)


class KillerPlugin(AirflowPlugin):
    """Brings it in."""

    name = "kill_scheduler"
    listeners = (Killer(),)
