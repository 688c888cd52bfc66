"""A PostgreSQL of one's own on the loopback, from the server binaries of the system."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lineage_backends.processes import HOST, BackendError, NotInstalledError, Server, free_ports, listens, run

USER = "lineage"
PASSWORD = "postgres-of-the-tests"  # noqa: S105 (of a server that lives as long as the test)
START_SECONDS = 30


@dataclass(frozen=True)
class PostgreSql:
    """Where the server is, and its superuser."""

    port: int
    binaries: Path
    user: str = USER
    password: str = PASSWORD

    def url(self, database: str, driver: str = "postgresql") -> str:
        """The URL of a database; ``driver`` as SQLAlchemy names it."""
        return f"{driver}://{self.user}:{self.password}@{HOST}:{self.port}/{database}"

    def create_database(self, name: str) -> None:
        """A new, empty database."""
        env = {"PATH": os.defpath, "PGPASSWORD": self.password}
        command = [self.binaries / "createdb", "-h", HOST, "-p", str(self.port), "-U", self.user, name]
        run(f"createdb {name}", command, env=env)


@contextmanager
def postgresql() -> Iterator[PostgreSql]:
    """Run a server; its data is gone afterwards."""
    binaries = _binaries()
    account = _account()
    # Not below pytest's own directory: another account could not enter that.
    home = Path(tempfile.mkdtemp(prefix="spark-lineage-postgresql-"))
    try:
        password_file = home / "password"
        password_file.write_text(PASSWORD)
        if account is not None:
            for path in (home, password_file):
                os.chown(path, pwd.getpwnam(account).pw_uid, -1)
        env = {"PATH": os.defpath, "LC_ALL": "C"}
        initdb = [binaries / "initdb", "-D", home / "data", "-U", USER, "--pwfile", password_file]
        initdb += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
        run("initdb", initdb, env=env, user=account)
        (port,) = free_ports(1)
        command = [binaries / "postgres", "-D", home / "data", "-h", HOST, "-p", str(port), "-k", ""]
        # Its data need not survive a power cut.
        command += ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"]
        server = Server.start("PostgreSQL", command, home / "log", env=env, user=account)
        try:
            server.wait_until(lambda: _is_ready(binaries, port), START_SECONDS)
            yield PostgreSql(port, binaries)
        finally:
            server.stop(signal.SIGINT)  # what PostgreSQL calls a fast shutdown
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _is_ready(binaries: Path, port: int) -> bool:
    if not listens(port):
        return False
    try:
        run("pg_isready", [binaries / "pg_isready", "-q", "-h", HOST, "-p", str(port)], env={"PATH": os.defpath})
    except BackendError:
        return False
    return True


def _binaries() -> Path:
    """Debian keeps them out of PATH, a directory a version."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    on_path = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    for directory in [*debian, *on_path]:
        if all((directory / name).exists() for name in ("initdb", "postgres", "createdb", "pg_isready")):
            return directory
    raise NotInstalledError("No PostgreSQL server is installed (on Debian: apt-get install postgresql).")


def _account() -> str | None:
    """PostgreSQL refuses to run as root: Debian's package brings an account for it."""
    if os.geteuid() != 0:
        return None
    names = {account.pw_name for account in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
