"""Reads the fields of an Airflow connection; errors name the field and the connection, and show no secret; pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from spark_lineage.secrets.secret_keys import is_secret_key
from spark_lineage.settings import SettingError
from spark_lineage.settings.values import boolean

DEFAULT_TIMEOUT_SECONDS, _MAX_SECONDS = 10.0, 3600.0
_PLACEHOLDER = re.compile(r"\{login\}|\{password\}")


@dataclass(frozen=True)
class ConnectionFields:
    """The fields of a connection as Airflow has them; empty text where it has none. ``repr`` shows no secret."""

    conn_id: str
    conn_type: str = ""
    host: str = field(default="", repr=False)
    schema: str = ""
    port: int | None = None
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, connection: Any) -> ConnectionFields:
        """Read a ``Connection`` of Airflow, of the SDK or of the core.

        :raises SettingError: when its extra is no JSON object
        """
        extra = connection.extra_dejson if connection.extra else {}
        # Airflow gives nothing for text that is no JSON.
        if not isinstance(extra, Mapping) or (not extra and str(connection.extra or "{}").strip() not in ("{}", "")):
            raise SettingError(f"the extra of the connection {connection.conn_id!r} is not a JSON object; give one")
        texts = {name: getattr(connection, name) or "" for name in ("conn_id", "conn_type", "login", "password")}
        texts |= {name: (getattr(connection, name) or "").strip() for name in ("host", "schema")}
        return cls(**texts, port=connection.port or None, extra=extra)

    def error(self, name: str, problem: str) -> SettingError:
        """Make the error about a field; ``problem`` follows its name, and says what to do."""
        return SettingError(f"{name!r} of the connection {self.conn_id!r} {problem}")

    def check_keys(self, known: Collection[str]) -> None:
        """Refuse unknown keys of the extra.

        :raises SettingError: with the key that was probably meant
        """
        for key in self.extra:
            if key not in known:
                near = difflib.get_close_matches(key.lower().replace("-", "_"), known, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
                raise self.error(str(key), f"is not known; {advice}")

    def text(self, key: str) -> str:
        """Return the text under a key of the extra, stripped; empty for none."""
        value = self.extra.get(key)
        return "" if value is None else self._text(key, value).strip()

    def choice(self, key: str, choices: Collection[str], default: str = "") -> str:
        """Return one of ``choices``, in lower case, or the default."""
        value = self.text(key).lower() or default
        if value and value not in choices:
            raise self.error(key, f"is {self._shown(key, value)}; give one of {', '.join(choices)}")
        return value

    @property
    def timeout_seconds(self) -> float:
        """``timeout_seconds`` of the extra, for a whole exchange; 10 by default."""
        text = self.text("timeout_seconds")
        try:
            value = float(text or DEFAULT_TIMEOUT_SECONDS)
        except ValueError:
            value = -1.0
        if not 0 < value <= _MAX_SECONDS:
            shown = self._shown("timeout_seconds", text)
            raise self.error("timeout_seconds", f"is {shown}; give seconds above 0, at most {_MAX_SECONDS:g}")
        return value

    def tls(self) -> tuple[bool, str, str, str]:
        """Return whether to verify (the default), and the paths of authorities, certificate and key; empty for none."""
        verify, authorities = True, self.text("verify")
        with suppress(SettingError):
            verify, authorities = boolean(authorities or True, "verify"), ""
        files = {"verify": authorities, **{name: self.text(name) for name in ("client_cert", "client_key")}}
        authorities, certificate, key = (self._path(*each) for each in files.items())
        if key and not certificate:
            raise self.error("client_key", "is given without 'client_cert'; give the certificate too")
        return verify, authorities, certificate, key

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Return an object, which may be JSON text, as forms and URIs have it; empty for none."""
        value: Any = self.extra.get(key)
        problem = ""
        if isinstance(value, str) and value:
            try:
                value = json.loads(value)
            except json.JSONDecodeError as error:
                # Raised outside: the error holds the value.
                problem = f"is not a JSON object (at character {error.pos}); give one, like {{...}}"
        if not problem and value not in (None, "") and not isinstance(value, Mapping):
            problem = f"is a {type(value).__name__}; give a JSON object"
        if problem:
            raise self.error(key, problem)
        return {str(name): each for name, each in (value or {}).items()}

    def texts(self, key: str) -> dict[str, str]:
        """Return an object of texts; numbers and booleans become text, None is left out."""
        given = self.mapping(key).items()
        return {name: self._text(f"{key}.{name}", value) for name, value in given if value is not None}

    def filled(self, value: Any) -> Any:
        """Return a nested value with login and password where it asks for them: ``{login}`` and ``{password}``."""
        if isinstance(value, str):
            given = {"{login}": self.login, "{password}": self.password}
            return _PLACEHOLDER.sub(lambda match: given[match[0]], value)
        if isinstance(value, Mapping):
            return {str(key): self.filled(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(each) for each in value]
        return value

    def _text(self, key: str, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        # A number in a connection's URI is one for Airflow 2 and the core, and text for the SDK.
        if not isinstance(value, str | int | float):
            raise self.error(key, f"is a {type(value).__name__}; give text")
        return str(value)

    def _path(self, key: str, text: str) -> str:
        if text and not text.startswith("/"):
            raise self.error(key, f"is {self._shown(key, text)}; give an absolute path")
        return text

    @staticmethod
    def _shown(key: str, text: str) -> str:
        return "set to what cannot be used" if is_secret_key(key) else repr(text)
