"""How one host is asked: who we say we are, and whom we believe."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from requests.auth import AuthBase, HTTPBasicAuth

from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from requests import PreparedRequest

Scheme = Literal["none", "basic", "bearer", "kerberos"]


@dataclass(frozen=True)
class Access:
    """Credentials and TLS for the URLs of one origin; ``repr`` shows no secret.

    ``verify`` is whether certificates are checked, or the path of a file or folder of certificate authorities. A
    ``token_file`` is read anew for each request: Kubernetes and others renew it.
    """

    scheme: Scheme = "none"
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    verify: bool | str = True
    client_cert: str = ""
    client_key: str = ""

    @property
    def certificate(self) -> str | tuple[str, str] | None:
        """The client certificate as ``requests`` wants it: one file, or certificate and key."""
        if self.client_cert and self.client_key:
            return self.client_cert, self.client_key
        return self.client_cert or None

    @property
    def authorities(self) -> bool | str:
        """What ``requests`` takes as ``verify``; the variables are those that it reads itself where it may."""
        if self.verify is not True:
            return self.verify
        return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True

    def authentication(self) -> AuthBase | None:
        """Return what signs a request.

        :raises SettingError: for ``kerberos`` where ``requests-kerberos`` is not installed
        """
        match self.scheme:
            case "basic":
                return HTTPBasicAuth(self.username.encode(), self.password.encode())
            case "bearer":
                return _Bearer(self.token, self.token_file)
            case "kerberos":
                return _kerberos()
            case "none":
                return None


class UnreadableTokenError(Exception):
    """The file of the token cannot be read; the text names the file."""


class _Bearer(AuthBase):
    def __init__(self, token: str, token_file: str) -> None:
        self._token = token
        self._file = token_file

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token or self._read()}"
        return request

    def _read(self) -> str:
        try:
            return Path(self._file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            cause = getattr(error, "strerror", None) or type(error).__name__
        raise UnreadableTokenError(f"the token file {self._file} cannot be read: {cause}")


def _kerberos() -> AuthBase:
    try:
        # Not an import statement: the package is optional, and comes without types.
        kerberos: Any = import_module("requests_kerberos")
    except ImportError as error:
        raise SettingError(
            "'status_auth' in the extra of the Spark connection is 'kerberos', which needs the package "
            "requests-kerberos; install it on the workers, or choose none, basic or bearer"
        ) from error
    # A server that cannot prove who it is still tells the status.
    authentication: AuthBase = kerberos.HTTPKerberosAuth(mutual_authentication=kerberos.OPTIONAL)
    return authentication
