"""A process as on a host of its own, as far as it sees: a name, and a disk that others find empty (``WORKER_DISK``)."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

_ELSEWHERE = 'mount --bind "$WORKER_DISK" "$AIRFLOW_HOME" && hostname "$WORKER_NAME" && exec "$@"'
_MAY = "mount --bind /tmp /tmp && hostname worker"


@cache
def elsewhere() -> tuple[str, ...]:
    """What to put before a command of a worker; nothing where the tests may not make namespaces of Linux."""
    for rights in ((), ("--user", "--map-root-user")):
        command = ("unshare", *rights, "--mount", "--uts", "/bin/sh", "-c")
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, _MAY], capture_output=True, check=False).returncode
        ):
            return (*command, _ELSEWHERE, "sh")
    return ()
