"""What OpenLineage's schemas, and the schemas of our own facets, hold against an event."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from lineage_backends.client_schemas import client_schemas
from lineage_backends.formats import FORMATS

REPOSITORY = Path(__file__).parents[3]
PUBLISHED = REPOSITORY / "tests" / "fixtures" / "schemas"
OURS = REPOSITORY / "docs" / "facets"
OPENLINEAGE = "https://openlineage.io/spec/2-0-2/OpenLineage.json"

_REPOSITORY = "https://github.com/spark-lineage/"
# Facets of others, for which OpenLineage has no schema but the bare one.
_KINDS = ("Run", "Job", "Dataset", "InputDataset", "OutputDataset")
_BARE = frozenset(f"{OPENLINEAGE}#/$defs/{kind}Facet" for kind in _KINDS)


def faults(event: object) -> list[str]:
    """What is wrong with a RunEvent (JSON as Python has it), each with its place; nothing for one that is right."""
    found = [_told(error) for error in _validator(f"{OPENLINEAGE}#/$defs/RunEvent").iter_errors(event)]
    if not isinstance(event, dict) or found:
        return found
    return [f"{place}: {fault}" for place, facet in _facets(event) for fault in _faults_of_facet(place, facet)]


def _faults_of_facet(place: str, facet: Mapping[str, Any]) -> Iterator[str]:
    url = facet["_schemaURL"]  # OpenLineage.json itself wants it
    document, _, fragment = url.partition("#")
    if url in _BARE:
        known = sorted(_by_key().get(place.rpartition("/")[2], ()))
        if known:
            yield f"has the schema of any facet, but OpenLineage has one for it: {known[0]}"
        return
    schemas = _schemas_of(document)
    if not schemas and not facet["_producer"].startswith(_REPOSITORY):
        # What passes through names a schema that its producer knows.
        return
    if not schemas:
        yield f"names a schema that nobody has published: {url}"
    for schema in schemas:
        if fragment.removeprefix("/$defs/") not in _documents()[schema]["$defs"]:
            yield f"names a schema that {schema} has not: {fragment}"
            continue
        yield from (_told(error) for error in _validator(f"{schema}#{fragment}").iter_errors(facet))


def _schemas_of(document: str) -> list[str]:
    """The document itself; when it is only known by the client's class, the published one of the same model as well.

    A later revision or addition takes what an earlier version wants, as SchemaVer has it; only a new model need not.
    """
    documents = _documents()
    if document not in documents:
        return []
    if document not in client_schemas():
        return [document]
    base, version, file = document.rsplit("/", 2)
    model = version.partition("-")[0]
    others = (each for each in documents if each != document and each.endswith(f"/{file}"))
    return [document, *(each for each in others if each.startswith(f"{base}/{model}-"))]


def _facets(event: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for part in ("run", "job"):
        yield from _facets_in(part, event.get(part, {}))
        parent = event.get("run", {}).get("facets", {}).get("parent", {})
        yield from _facets_in(f"run/facets/parent/{part}", parent.get(part, {}))
        yield from _facets_in(f"run/facets/parent/root/{part}", parent.get("root", {}).get(part, {}))
    for part in ("inputs", "outputs"):
        for number, dataset in enumerate(event.get(part, ())):
            yield from _facets_in(f"{part}/{number}", dataset)


def _facets_in(place: str, holder: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for group in ("facets", "inputFacets", "outputFacets"):
        for key, facet in (holder.get(group) or {}).items():
            yield f"{place}/{group}/{key}", facet


def _told(error: Any) -> str:
    while error.context:  # of an anyOf: what went wrong deepest inside is what matters
        error = max(error.context, key=lambda each: len(each.absolute_path))
    place = "/".join(map(str, error.absolute_path))
    return f"{place or 'the event'}: {error.message[:500]}"


@cache
def _documents() -> dict[str, dict[str, Any]]:
    """Every schema document by its URL; a published file stands before what the client's classes tell."""
    published = [json.loads(path.read_text()) for path in [*PUBLISHED.rglob("*.json"), *OURS.rglob("*.json")]]
    return client_schemas() | {document["$id"]: document for document in published}


@cache
def _by_key() -> dict[str, frozenset[str]]:
    """The URLs of the documents that say for which key of an event they are."""
    keys: dict[str, frozenset[str]] = {}
    for url, document in _documents().items():
        for key in document.get("properties", {}):
            keys[key] = keys.get(key, frozenset()) | {url}
    return keys


@cache
def _validator(url: str) -> Draft202012Validator:
    resources = [(name, DRAFT202012.create_resource(document)) for name, document in _documents().items()]
    registry: Registry[Any] = Registry().with_resources(resources)
    return Draft202012Validator({"$ref": url}, registry=registry, format_checker=FORMATS)
