"""Atlas's REST API, version 2: types, entities in bulk, one by its qualified name, search; errors in Atlas's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count, groupby
from operator import itemgetter
from typing import Any
from urllib.parse import quote

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from spark_lineage.atlas.datasets import Thing
from spark_lineage.atlas.types import SERVICE, left_alone, to_make, to_update
from spark_lineage.deliver.sender import Later, Refused, rejection_of
from spark_lineage.launch.log import Log

_log = Log(__name__)

_API = "/api/atlas/v2"
_PAGE = 100
# Atlas takes a tenth of a second for each.
_DELETED = 10
# What Atlas says of a request that it has read: a type, an attribute or a reference is wrong.
_REFUSALS = frozenset({400, 404, 409, 412, 413, 422})
# What a proxy in front of it answers to a request that is too large, or that it filters.
_TOO_MUCH = frozenset({400, 413})
_MISSING = 404
_OK, _NO_CONTENT, _UNAUTHORIZED = 200, 204, 401
# A type of that name is there (AtlasErrorCode.TYPE_ALREADY_EXISTS): another worker has made it meanwhile.
_CONFLICT = 409
_TRIES = 3
# So much of a URL is names: Atlas takes 16 kB.
_URL = 8_000
_RELATIONSHIPS = {"inputs": "dataset_process_inputs", "outputs": "process_dataset_outputs"}


class AtlasRefusal(Refused):
    """Atlas has read the request, and refuses it; ``status`` is that of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@contextmanager
def _passing(status: int) -> Iterator[None]:
    """Ignore Atlas's refusal with this status: the requested state exists already."""
    try:
        yield
    except AtlasRefusal as error:
        if error.status != status:
            raise


class AtlasRest:
    """A session with one Atlas.

    Every method raises ``AtlasRefusal`` for what Atlas refuses, and ``Later`` or another ``Refused`` where it did not
    answer, or not as Atlas.

    :param session: with credentials, TLS and time-out
    :param url: what comes before ``/api/atlas``
    """

    def __init__(self, session: httpx.Client, url: str) -> None:
        self._session = session
        self._url = url

    def make_types(self) -> bool:
        """Create missing types, and update older ones, but not newer ones; return whether there was anything to do."""
        # Another worker may make them at the same time.
        conflict = retry_if_exception(lambda error: isinstance(error, AtlasRefusal) and error.status == _CONFLICT)
        return Retrying(retry=conflict, stop=stop_after_attempt(_TRIES), reraise=True)(self._make_types)

    def _make_types(self) -> bool:
        present = self._request("GET", "/types/typedefs", params={"serviceType": SERVICE}, has="entityDefs")
        missing, older = to_make(present), to_update(present)
        if any(missing.values()):
            self._request("POST", "/types/typedefs", missing)
        if older:
            self._request("PUT", "/types/typedefs", {"entityDefs": older})
        for name in left_alone(present):
            _log.warning("The type %s in Atlas is newer than this package's, and left alone.", name)
        return bool(any(missing.values()) or older)

    def put(self, entities: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Create or update entities, all or none; return ``EntityMutationResponse``."""
        answer: Mapping[str, Any] = self._request("POST", "/entity/bulk", {"entities": entities}, has="guidAssignments")
        return answer

    def entities(self, things: Iterable[Thing], *, are_bare: bool = False) -> dict[tuple[str, str], dict[str, Any]]:
        """Return those that are there and not deleted, by their keys; ``referred`` has the entities that one owns.

        :param are_bare: without relationships, which of a database are all of its tables
        """
        found = {}
        for kind, keys in groupby(sorted({each.key for each in things}), key=itemgetter(0)):
            for some in _fitting(name for _, name in keys):
                query = {f"attr_{number}:qualifiedName": name for number, name in enumerate(some)}
                query |= {"minExtInfo": "true", "ignoreRelationships": str(are_bare).lower()}
                try:
                    answer = self._request(
                        "GET", f"/entity/bulk/uniqueAttribute/type/{kind}", params=query, has="entities"
                    )
                except AtlasRefusal:
                    # A type that Atlas does not know has none.
                    continue
                referred = answer.get("referredEntities") or {}
                for each in answer.get("entities") or ():
                    if each.get("status") != "DELETED":
                        related = (each.get("relationshipAttributes") or {}).values()
                        own = [one["guid"] for some in related if isinstance(some, list) for one in some]
                        whole = {**each, "referred": [referred[guid] for guid in own if guid in referred]}
                        found[kind, each["attributes"]["qualifiedName"]] = whole
        return found

    def relate(self, name: str, process_guid: str, dataset_guid: str) -> None:
        """Make a dataset an input or output (``name``) of a process, unless it is one."""
        ends = {
            "end1": {"typeName": "Process", "guid": process_guid},
            "end2": {"typeName": "DataSet", "guid": dataset_guid},
        }
        with _passing(_CONFLICT):
            self._request("POST", "/relationship", {"typeName": _RELATIONSHIPS[name], **ends})

    def unrelate(self, relationship_guid: str) -> None:
        """Remove a relationship, unless it is removed already."""
        with _passing(_MISSING):
            self._request("DELETE", f"/relationship/guid/{relationship_guid}")

    def change(self, thing: Thing, attributes: Mapping[str, Any]) -> None:
        """Change attributes of an entity, if it is there; the others stay."""
        # Without its name, searches for text would not find the entity again.
        name = {key: thing.attributes[key] for key in ("name",) if key in thing.attributes}
        self._by_name("PUT", thing, {"entity": {"typeName": thing.type, "attributes": {**name, **attributes}}})

    def delete(self, thing: Thing) -> None:
        """Delete an entity, if it is there."""
        self._by_name("DELETE", thing)

    def delete_all(self, guids: Sequence[str]) -> None:
        """Delete entities, and what they own."""
        for start in range(0, len(guids), _DELETED):
            self._request("DELETE", "/entity/bulk", params={"guid": guids[start : start + _DELETED]})

    def all_of(self, type_name: str, namespace: str = "") -> Iterator[Mapping[str, Any]]:
        """Return the headers of all entities of a type that are not deleted, with the names of DAGs and tasks.

        :param namespace: of the jobs; empty for all
        """
        query: dict[str, Any] = {
            "typeName": type_name,
            "excludeDeletedEntities": True,
            "attributes": ["dagId", "taskId"],
        }
        if namespace:
            of_it = {"attributeName": "jobNamespace", "operator": "eq", "attributeValue": namespace}
            query["entityFilters"] = {"condition": "AND", "criterion": [of_it]}
        is_busy = retry_if_exception(lambda error: isinstance(error, Later) and not error.is_away)
        for offset in count(0, _PAGE):
            page = {**query, "limit": _PAGE, "offset": offset}
            again = Retrying(retry=is_busy, stop=stop_after_attempt(_TRIES), reraise=True)
            found = again(self._request, "POST", "/search/basic", page, has="queryType").get("entities") or []
            yield from found
            if len(found) < _PAGE:
                return

    def _by_name(self, method: str, thing: Thing, body: Any = None) -> None:
        name = {"attr:qualifiedName": thing.qualified_name}
        with _passing(_MISSING):
            self._request(method, f"/entity/uniqueAttribute/type/{thing.type}", body, name)

    def _request(
        self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None, has: str = ""
    ) -> Any:
        """Send a request; ``has`` is a key of every answer of Atlas that is not empty, and of no answer of a proxy."""
        where = f"{self._url}{_API}{path}"
        try:
            answer = self._session.request(method, f"{self._url}{_API}{path}", json=body, params=params)
        except httpx.HTTPError as error:
            is_away = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError)
            problem = str(error) or type(error).__name__
        else:
            return self._read(where, answer, has, is_empty_good=has in ("", "entities"))
        # Outside of the handlers: the error of httpx, with its request and headers, must not hang on ours.
        raise Later(f"{where}: no answer: {problem}", is_away=is_away)

    @staticmethod
    def _read(where: str, answer: httpx.Response, has: str, *, is_empty_good: bool) -> Any:
        said: Any = None
        with suppress(ValueError):
            said = answer.json() if answer.content or answer.status_code != _NO_CONTENT else {}
        is_good = answer.status_code in (_OK, _NO_CONTENT) and isinstance(said, dict)
        if is_good and (not has or has in said or (not said and is_empty_good)):
            return said
        is_atlas = isinstance(said, dict) and "errorCode" in said
        text = f"{said['errorCode']}: {said.get('errorMessage', '')}" if is_atlas else "and not as Atlas does"
        text = f"{where} answered {answer.status_code}: {text}"
        if answer.status_code in _REFUSALS if is_atlas else answer.status_code in _TOO_MUCH:
            raise AtlasRefusal(text, answer.status_code)
        # A page or a redirect is that of a login in front of Atlas: its events wait.
        status = answer.status_code if answer.is_error else _UNAUTHORIZED
        raise rejection_of(status, text, answer.headers.get("Retry-After", ""))


def _fitting(names: Iterable[str]) -> Iterator[list[str]]:
    """Return the names in parts that fit a URL."""
    part: list[str] = []
    for name in names:
        if part and len(quote("".join((*part, name)))) > _URL:
            yield part
            part = []
        part.append(name)
    if part:
        yield part
