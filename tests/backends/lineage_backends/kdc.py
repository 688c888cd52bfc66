"""A Kerberos realm of its own: MIT's KDC on the loopback, without privileges."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lineage_backends.processes import HOST, NotInstalledError, Server, free_ports, listens, run

if TYPE_CHECKING:
    from collections.abc import Iterator

REALM = "SPARK.TEST"
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_SECONDS = 60


@dataclass
class Kdc:
    """A realm with one server principal; ``env`` is what a process needs to belong to it."""

    folder: Path
    principal: str
    env: dict[str, str]

    @property
    def keytab(self) -> Path:
        """The key of the server."""
        return self.folder / "server.keytab"

    @property
    def config(self) -> Path:
        """The file that leads to the KDC."""
        return self.folder / "krb5.conf"

    def ticket(self, user: str) -> dict[str, str]:
        """Make a user who has a ticket, and return the environment of that user."""
        keytab, env = self.folder / f"{user}.keytab", {"KRB5CCNAME": f"FILE:{self.folder / user}"}
        self._admin(f"addprinc -randkey {user}")
        self._admin(f"ktadd -k {keytab} {user}")
        run("a ticket", [_program("kinit"), "-k", "-t", keytab, f"{user}@{REALM}"], env=self.env | env)
        return {"KRB5_CONFIG": str(self.config), **env}

    def _admin(self, query: str) -> None:
        run(query, [_program("kadmin.local"), "-r", REALM, "-q", query], env=self.env)


@contextmanager
def kdc(host: str = "localhost") -> Iterator[Kdc]:
    """Run a KDC that knows the HTTP server of a host.

    :raises NotInstalledError: when MIT Kerberos or the Python package is not there
    """
    if missing := [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]:
        text = f"{', '.join(missing)} of MIT Kerberos is not installed"
        raise NotInstalledError(f"{text} (Debian: apt-get install krb5-kdc krb5-admin-server krb5-user)")
    if find_spec("httpx_gssapi") is None:
        text = "httpx-gssapi is not installed (Debian: apt-get install libkrb5-dev gcc python3-dev"
        raise NotInstalledError(f"{text}; then make a new .venv)")
    with tempfile.TemporaryDirectory() as name:
        folder, (port,) = Path(name), free_ports(1)
        (folder / "krb5.conf").write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\nrdns = false\n"
            f"dns_canonicalize_hostname = false\nudp_preference_limit = 1\n"
            f"[realms]\n{REALM} = {{\nkdc = {HOST}:{port}\n}}\n[domain_realm]\nlocalhost = {REALM}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\nkdc_listen = {HOST}:{port}\nkdc_tcp_listen = {HOST}:{port}\n"
            f"[realms]\n{REALM} = {{\ndatabase_name = {folder}/principal\nkey_stash_file = {folder}/stash\n"
            f"acl_file = {folder}/acl\nsupported_enctypes = aes256-cts:normal\n}}\n"
            f"[logging]\nkdc = FILE:{folder}/kdc.log\n"
        )
        env = {"PATH": _PATH, "KRB5_CONFIG": f"{folder}/krb5.conf", "KRB5_KDC_PROFILE": f"{folder}/kdc.conf"}
        create = [_program("kdb5_util"), "create", "-s", "-r", REALM, "-P", "of-the-test"]
        run("the realm", create, env=env)
        server = Server.start("krb5kdc", [_program("krb5kdc"), "-n", "-r", REALM], folder / "server.log", env=env)
        try:
            server.wait_until(lambda: listens(port), _SECONDS)
            realm = Kdc(folder, f"HTTP/{host}@{REALM}", env)
            realm._admin(f"addprinc -randkey {realm.principal}")
            realm._admin(f"ktadd -k {realm.keytab} {realm.principal}")
            yield realm
        finally:
            server.stop()


def _program(name: str) -> str:
    return str(shutil.which(name, path=_PATH))
