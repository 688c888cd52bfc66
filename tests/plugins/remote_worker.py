"""The host of the workers: forks a process for each workload that it finds in a directory, and notes how that ends.

It imports Airflow once for all of them, which is most of what a task would take. Each workload has a session of its
own, whose leader's process id is in ``TASK_INSTANCE_ID.pid``; the exit code is in ``.exit``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path

from airflow.sdk.execution_time import execute_workload, supervisor, task_runner  # noqa: F401
from remote_executor import put

from spark_lineage.operators import lineage_spark_submit  # noqa: F401


def run(workload: Path) -> None:
    """Fork the leader of a session, and return; the leader waits for the process that runs the workload."""
    content = workload.read_text()
    leader = os.fork()
    if leader:
        put(workload.with_suffix(".pid"), str(leader))
        workload.unlink()
        return
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(workload.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    worker = os.fork()
    if not worker:
        sys.argv[1:] = ["--json-string", content]
        code = 1
        try:
            execute_workload.main()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    pid = workload.with_suffix(".pid")
    # A task that was deferred may have been started again meanwhile: this is no end of that.
    if pid.exists() and pid.read_text() == str(os.getpid()):
        put(workload.with_suffix(".exit"), str(code))
    os._exit(0)


if __name__ == "__main__":
    # Nobody waits for a leader.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        for workload in Path(sys.argv[1]).glob("*.workload"):
            run(workload)
        time.sleep(0.1)
