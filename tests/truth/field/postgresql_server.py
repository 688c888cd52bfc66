"""A PostgreSQL of a program's own on the loopback, from the server binaries of the system; its data goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST, PORT, USER = "127.0.0.1", 55433, "lineage"
_SECONDS = 60


@contextmanager
def postgresql() -> Iterator[str]:
    """Run the server, and return the URL of its database ``shop``."""
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    home = Path(tempfile.mkdtemp(prefix="truth-postgresql-"))
    account = _account()
    options = {"user": account, "env": {"PATH": os.defpath, "LC_ALL": "C"}, "stdout": subprocess.DEVNULL}
    if account is not None:
        os.chown(home, pwd.getpwnam(account).pw_uid, -1)
    initdb = [binaries / "initdb", "-D", home / "data", "-U", USER, "--auth", "trust", "--no-sync"]
    subprocess.run([*initdb, "--encoding", "UTF8"], check=True, cwd="/", **options)
    command = [binaries / "postgres", "-D", home / "data", "-h", HOST, "-p", str(PORT), "-k", "", "-c", "fsync=off"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, cwd="/", **options | {"stdout": log, "stderr": log})
    try:
        connected = ["-h", HOST, "-p", str(PORT), "-U", USER]
        deadline = time.monotonic() + _SECONDS
        while subprocess.run([binaries / "pg_isready", "-q", *connected], check=False).returncode:
            if time.monotonic() > deadline or server.poll() is not None:
                raise RuntimeError((home / "log").read_text())
            time.sleep(0.2)
        subprocess.run([binaries / "createdb", *connected, "shop"], check=True)
        yield f"jdbc:postgresql://{HOST}:{PORT}/shop"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(_SECONDS)
        shutil.rmtree(home, ignore_errors=True)


def _account() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {account.pw_name for account in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
