"""Atlas's REST API, version 2: types, entities in bulk, one by its qualified name, search; errors in Atlas's words."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import requests

from spark_lineage.atlas.datasets import Thing
from spark_lineage.atlas.types import SERVICE, left_alone, to_make, to_update
from spark_lineage.deliver.transports.errors import AnswerError, NotTakenError, UnreachableError, cause_of
from spark_lineage.secrets.redaction import redact

_log = logging.getLogger(__name__)

_API = "/api/atlas/v2"
_PAGE = 100
# What Atlas says of a request that it has read: a type, an attribute or a reference is wrong.
_REFUSALS = frozenset({400, 404, 409, 412, 413, 422})
_MISSING = 404
# A type of that name is there (AtlasErrorCode.TYPE_ALREADY_EXISTS): another worker has made it meanwhile.
_CONFLICT = 409
_TRIES = 3


class RefusedError(NotTakenError):
    """Atlas has read the request, and refuses it; ``status`` is that of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text, is_refusal=True)
        self.status = status


class AtlasRest:
    """A session with one Atlas.

    Every method raises ``RefusedError`` for what Atlas refuses, and another ``NotTakenError`` where it did not answer,
    or not as Atlas; texts are redacted.

    :param session: with credentials, TLS and time-out
    :param url: what comes before ``/api/atlas``
    """

    def __init__(self, session: requests.Session, url: str) -> None:
        self._session = session
        self._url = url

    def make_types(self) -> None:
        """Make our types where they are missing, and update those that are older; newer ones are left alone."""
        for last in (False,) * (_TRIES - 1) + (True,):
            present = self._ask("GET", "/types/typedefs", params={"serviceType": SERVICE})
            missing, older = to_make(present), to_update(present)
            try:
                if any(missing.values()):
                    self._ask("POST", "/types/typedefs", missing)
                if older:
                    self._ask("PUT", "/types/typedefs", {"entityDefs": older})
            except RefusedError as error:
                # Another worker makes them at the same time.
                if last or error.status != _CONFLICT:
                    raise
                continue
            for name in left_alone(present):
                _log.warning("The type %s in Atlas is newer than this package's, and left alone.", name)
            return

    def put(self, entities: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Create or update entities, all or none; return ``EntityMutationResponse``."""
        answer: Mapping[str, Any] = self._ask("POST", "/entity/bulk", {"entities": entities})
        return answer

    def entity(self, thing: Thing) -> Mapping[str, Any] | None:
        """Return an entity, None where there is none that is not deleted."""
        try:
            found = self._ask("GET", self._unique(thing), params=self._by_name(thing))["entity"]
        except RefusedError as error:
            if error.status != _MISSING:
                raise
            return None
        return found if found.get("status") != "DELETED" else None

    def rename(self, old: Thing, new: Thing) -> bool:
        """Give an entity the name and qualified name of another; False where it is not there."""
        names = {key: new.attributes[key] for key in ("qualifiedName", "name")}
        entity = {"entity": {"typeName": old.type, "attributes": names}}
        try:
            self._ask("PUT", self._unique(old), entity, params=self._by_name(old))
        except RefusedError as error:
            if error.status != _MISSING:
                raise
            return False
        return True

    def delete(self, thing: Thing) -> None:
        """Delete an entity, if it is there."""
        try:
            self._ask("DELETE", self._unique(thing), params=self._by_name(thing))
        except RefusedError as error:
            if error.status != _MISSING:
                raise

    def delete_by_guid(self, guid: str) -> None:
        """Delete an entity."""
        self._ask("DELETE", f"/entity/guid/{guid}")

    def all_of(self, type_name: str) -> Iterator[Mapping[str, Any]]:
        """Return the headers of all entities of a type that are not deleted, with the names of their tasks."""
        offset = 0
        while True:
            query = {
                "typeName": type_name,
                "excludeDeletedEntities": True,
                "limit": _PAGE,
                "offset": offset,
                "attributes": ["jobNamespace", "dagId", "taskId"],
            }
            found = self._ask("POST", "/search/basic", query).get("entities") or []
            yield from found
            if len(found) < _PAGE:
                return
            offset += _PAGE

    @staticmethod
    def _unique(thing: Thing) -> str:
        return f"/entity/uniqueAttribute/type/{thing.type}"

    @staticmethod
    def _by_name(thing: Thing) -> dict[str, str]:
        return {"attr:qualifiedName": thing.qualified_name}

    def _ask(self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None) -> Any:
        where = f"{redact(self._url)}{_API}{path}"
        try:
            answer = self._session.request(method, f"{self._url}{_API}{path}", json=body, params=params)
        except (requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            kind, problem = NotTakenError, cause_of(error)
        except requests.RequestException as error:
            kind, problem = UnreachableError, cause_of(error)
        else:
            return self._read(where, answer)
        # Outside of the handlers: the error of requests, with its request and headers, must not hang on ours.
        raise kind(f"{where}: no answer: {problem}")

    @staticmethod
    def _read(where: str, answer: requests.Response) -> Any:
        said: Any = None
        with suppress(ValueError):
            said = answer.json() if answer.content else {}
        if answer.ok and said is not None:
            return said
        is_atlas = isinstance(said, dict) and "errorCode" in said
        words = f"{said['errorCode']}: {said.get('errorMessage', '')}" if is_atlas else "and not as Atlas does"
        text = redact(f"{where} answered {answer.status_code}: {words}")
        if is_atlas and answer.status_code in _REFUSALS:
            raise RefusedError(text, answer.status_code)
        kept = requests.Response()
        # A page with 200 is that of a login in front of Atlas: its events wait.
        kept.status_code = answer.status_code if not answer.ok else requests.codes.unauthorized
        if "Retry-After" in answer.headers:
            kept.headers["Retry-After"] = answer.headers["Retry-After"]
        raise AnswerError(text, kept)
