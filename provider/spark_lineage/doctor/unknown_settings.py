"""Finds what was meant as a setting and is none: unknown options of the section, and keys with a slip of the pen."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from spark_lineage.doctor.report import ENVIRONMENT_PREFIX, NDJSON_PATH, section_source
from spark_lineage.naming.options import is_naming_key
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SECTION, Settings
from spark_lineage.watch.endpoints import ENDPOINT_KEYS

_OURS = (*(setting.name for setting in fields(Settings)), "resolvers", NDJSON_PATH)
# Those of airflow.providers.apache.spark.hooks.spark_submit; the extra may hold others, which are nobody's business.
_OF_THE_SPARK_PROVIDER = ("queue", "deploy-mode", "spark-binary", "spark-home", "principal", "keytab")
_FAMILIES = {
    "hostnamepattern": "hostnamePattern.<cluster>",
    "hostnamelist": "hostnameList.<cluster>",
    "hostnamedefault": "hostnameDefault",
    "pathpattern": "pathPattern.<label>",
}
_PREFIXES = re.compile(r"^(?:extra__spark__|spark[_.-]?lineage[_.-]+)")
_NEARLY_OURS = re.compile(r"AIRFLOW_+SPARK_*LINEAGE", re.IGNORECASE)
_SIMILARITY, _SIMILARITY_OF_VARIABLES = 0.8, 0.85


def unknown_settings(section: Mapping[str, Any], extra: Mapping[str, Any], conn_id: str) -> Iterator[str]:
    """Say of each what it is, where it stands, and what was probably meant.

    :param section: all that is set in ``[spark_lineage]``
    """
    for key in sorted(section):
        if key not in _OURS and not is_naming_key(key):
            yield redact(f"{section_source(key)}: [{SECTION}] has no option {key!r}{_hint(key, _OURS)}")
    known = {*_OURS, *ENDPOINT_KEYS, *_OF_THE_SPARK_PROVIDER}
    for key in sorted(map(str, extra)):
        if key not in known and not is_naming_key(key) and (meant := _meant(key, known)):
            yield redact(f"extra of the connection {conn_id}: {key!r} is not read; is {meant!r} meant?")
    for name in sorted(os.environ):
        if not name.startswith(ENVIRONMENT_PREFIX) and (meant := _meant_variable(name)):
            yield redact(f"environment variable {name} is not read; is {meant} meant?")


def unreadable() -> Iterator[str]:
    """Return the environment variables with which Airflow can read the whole section no more.

    Those that are to give an option by a command or a secret backend, which it takes for options alone that it knows as
    sensitive, and those with small letters.
    """
    for name in sorted(os.environ):
        if name.startswith(ENVIRONMENT_PREFIX) and (name.endswith(("_CMD", "_SECRET")) or name != name.upper()):
            yield name


def _hint(key: str, known: Iterable[str]) -> str:
    meant = _meant(key, known)
    return f"; is {meant!r} meant?" if meant else ""


def _meant(key: str, known: Iterable[str]) -> str | None:
    plain = {_plain(one): one for one in known} | _FAMILIES
    head = _plain(re.split(r"[._]", _PREFIXES.sub("", key.lower()))[0])
    found = get_close_matches(_plain(key), plain, n=1, cutoff=_SIMILARITY)
    if not found and head not in plain:
        # hostnamePatern.prod: the first word alone is ours, what follows is a name of the user's.
        found = get_close_matches(head, _FAMILIES, n=1, cutoff=_SIMILARITY)
    return plain[found[0]] if found else None


def _meant_variable(name: str) -> str | None:
    """Return the variable of ours that was probably meant by one of another name."""
    if name.startswith(("AIRFLOW_CONN_", "AIRFLOW_VAR_")):
        return None
    nearly = _NEARLY_OURS.match(name)
    option = name[nearly.end() :].lstrip("_").upper() if nearly else ""
    if option.lower() not in _OURS and not is_naming_key(option.lower()):
        ours = [f"{ENVIRONMENT_PREFIX}{each.upper()}" for each in _OURS]
        if found := get_close_matches(name.upper(), ours, n=1, cutoff=_SIMILARITY_OF_VARIABLES):
            return found[0]
    return f"{ENVIRONMENT_PREFIX}{option}" if option else None


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _PREFIXES.sub("", key.lower()))
