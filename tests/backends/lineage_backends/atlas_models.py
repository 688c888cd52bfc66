"""The type definitions of Atlas 2.1.0: those of an export that its tests bring, and the few that came later."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# An export that holds every type of the server it was made on, shortly before the release.
_EXPORT, _TYPES = "zip-direct-1.zip", "atlas-typesdef.json"
_LISTS = ("enumDefs", "structDefs", "classificationDefs", "entityDefs", "relationshipDefs")
_ONLY_OF_THE_EXPORT = {
    "namespace_drstrange_enum_property_enum",
    "namespace_spiderman_enum_property_enum",
    "spark_process_execution",
    "spark_process_process_executions",
}
_ADDED_ATTRIBUTES = {
    "Asset": ("displayName", "userDescription"),
    "aws_s3_v2_bucket": ("accountId",),
    "spark_process": ("queryText",),
}
_ADDED_ENUMS = {
    "atlas_operation": ("OTHERS", "PURGE", "EXPORT", "IMPORT", "IMPORT_DELETE_REPL"),
    "adls_gen2_performance": ("Standard", "Premium"),
    "adls_gen2_access_tier": ("Cool", "Hot"),
    "adls_gen2_replication": ("LRS", "ZRS", "GRS", "GZRS", "RA-GRS"),
    "adls_gen2_authentication_method": ("Access Key", "Azure AD User Account"),
}
# Supertypes; attributes as ``name: type``, with ``!`` where they are mandatory and ``*`` where they are unique.
_ADDED_TYPES: dict[str, tuple[str, str]] = {
    "__AtlasAuditEntry": (
        "__internal",
        (
            "userName:string! operation:atlas_operation! startTime:date! endTime:date clientId:string params:string "
            "result:string resultCount:long"
        ),
    ),
    "spark_application": ("Process", "currentUser:string remoteUser:string"),
    "spark_column_lineage": ("Process", ""),
    "adls_gen2_parent": ("", ""),
    "adls_gen2_child": ("", ""),
    "adls_gen2_account": (
        "Asset",
        (
            "resourceGroup:string status:string location:string subscription:string tags:map<string,string> "
            "performance:adls_gen2_performance accessTier:adls_gen2_access_tier replication:adls_gen2_replication "
            "accountKind:string isSecureTransferRequired:boolean isLargeFileSharesEnabled:boolean "
            "isIdentityBasedAccessForFileSharesEnabled:boolean isHierarchicalNamespaceEnabled:boolean isNfsV3:boolean"
        ),
    ),
    "adls_gen2_container": (
        "DataSet adls_gen2_parent",
        (
            "url:string eTag:string authenticationMethod:adls_gen2_authentication_method "
            "additionalProperties:map<string,string>"
        ),
    ),
    "adls_gen2_directory": (
        "DataSet adls_gen2_parent adls_gen2_child",
        "eTag:string contentType:string* contentEncoding:string contentDisposition:string cacheControl:string",
    ),
    "adls_gen2_blob": (
        "DataSet adls_gen2_child",
        "url:string type:string eTag:string contentType:string!* additionalProperties:map<string,string>",
    ),
}
# Category, then the end that holds the others (type, name) and the other end; ``[]`` where there are many.
_ADDED_RELATIONSHIPS: dict[str, tuple[str, str, str]] = {
    "spark_process_column_lineages": (
        "AGGREGATION",
        "spark_process.columnLineages[]",
        "spark_column_lineage.process",
    ),
    "spark_application_processes": ("AGGREGATION", "spark_application.processes[]", "spark_process.application"),
    "spark_ml_model_dataset": ("ASSOCIATION", "spark_ml_model.dataset", "DataSet.model"),
    "spark_ml_pipeline_dataset": ("ASSOCIATION", "spark_ml_pipeline.dataset", "DataSet.pipeline"),
    "adls_gen2_account_containers": (
        "COMPOSITION",
        "adls_gen2_account.containers[]",
        "adls_gen2_container.account",
    ),
    "adls_gen2_parent_children": ("COMPOSITION", "adls_gen2_parent.children[]", "adls_gen2_child.parent"),
}


def typedefs(tests_jar: Path) -> dict[str, list[dict[str, Any]]]:
    """The definitions by their kind (``entityDefs`` and so on), out of the test jar of ``atlas-repository``."""
    with zipfile.ZipFile(tests_jar) as jar, zipfile.ZipFile(io.BytesIO(jar.read(_EXPORT))) as export:
        exported = json.loads(export.read(_TYPES))
    found = {kind: [each for each in exported[kind] if each["name"] not in _ONLY_OF_THE_EXPORT] for kind in _LISTS}
    for entity in found["entityDefs"]:
        entity["attributeDefs"] += [_attribute(f"{name}:string") for name in _ADDED_ATTRIBUTES.get(entity["name"], ())]
    found["enumDefs"] += [_enum(name, values) for name, values in _ADDED_ENUMS.items()]
    found["entityDefs"] += [
        _definition("ENTITY", name)
        | {"superTypes": supertypes.split(), "attributeDefs": [_attribute(each) for each in attributes.split()]}
        for name, (supertypes, attributes) in _ADDED_TYPES.items()
    ]
    found["relationshipDefs"] += [_relationship(name, *parts) for name, parts in _ADDED_RELATIONSHIPS.items()]
    return found


def _definition(category: str, name: str) -> dict[str, Any]:
    return {"category": category, "name": name, "description": name, "typeVersion": "1.0"}


def _enum(name: str, values: Sequence[str]) -> dict[str, Any]:
    elements = [{"value": value, "ordinal": ordinal} for ordinal, value in enumerate(values)]
    return _definition("ENUM", name) | {"elementDefs": elements}


def _attribute(text: str) -> dict[str, Any]:
    name, _, kind = text.partition(":")
    is_mandatory, is_unique = "!" in kind, "*" in kind
    return {
        "name": name,
        "typeName": kind.rstrip("!*"),
        "cardinality": "SINGLE",
        "valuesMinCount": int(is_mandatory),
        "valuesMaxCount": 1,
        "isOptional": not is_mandatory,
        "isUnique": is_unique,
        "isIndexable": is_unique,
    }


def _relationship(name: str, category: str, holder: str, held: str) -> dict[str, Any]:
    ends = [_end(holder) | {"isContainer": category != "ASSOCIATION"}, _end(held) | {"isContainer": False}]
    definition = _definition("RELATIONSHIP", name) | {"relationshipCategory": category, "propagateTags": "NONE"}
    return definition | {"attributeDefs": [], "endDef1": ends[0], "endDef2": ends[1]}


def _end(text: str) -> dict[str, Any]:
    kind, _, name = text.removesuffix("[]").partition(".")
    return {"type": kind, "name": name, "cardinality": "SET" if text.endswith("[]") else "SINGLE"}
