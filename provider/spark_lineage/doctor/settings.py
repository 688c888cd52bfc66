"""Every setting with its value and where it was set, secrets masked; invalid values; likely misspellings."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from configparser import ConfigParser
from dataclasses import dataclass, fields
from difflib import SequenceMatcher, get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

from spark_lineage.doctor.setup import Finding, Setup, ok, problem, warning
from spark_lineage.launch.log import error_text
from spark_lineage.naming.options import NamingError, is_naming_key, naming_from
from spark_lineage.secrets.secret_keys import MASK
from spark_lineage.settings import SECTION, SettingError, Settings
from spark_lineage.settings.places import (
    DEFAULT_JAR,
    Places,
    lineage_directory,
    option,
    outbox_directory,
    section,
)
from spark_lineage.watch.endpoints import ENDPOINT_KEYS, Endpoints

_PREFIX = f"AIRFLOW__{SECTION.upper()}__"
# An option that a listener reads by itself (``spark_lineage.listeners.ndjson_listener``).
_NDJSON_PATH = "ndjson_listener_path"
_OURS = (*(setting.name for setting in fields(Settings)), "resolvers", "extra_names_code", _NDJSON_PATH)
_NAMING = ("hostnamePattern.<cluster>", "hostnameList.<cluster>", "hostnameDefault", "pathPattern.<label>")
_SIMILARITY, _SIMILARITY_OF_VARIABLES = 0.8, 0.9
_SEE = "spark-lineage config shows all of them"


@dataclass(frozen=True)
class ShownSetting:
    """One setting as it may be shown.

    ``value`` is JSON, ``source`` is where it was set, for a person, ``error`` what is wrong with it, and what fits.
    """

    name: str
    value: Any
    source: str
    error: str = ""


def check_settings(setup: Setup) -> Iterator[Finding]:
    """Read them as a task does that has no argument of its own."""
    for name in unreadable():
        yield problem(
            f"{name} is set, which Airflow does not take for an option of [{SECTION}]: no setting can be read",
            "remove it, or write all of it in capitals: until then jobs run without lineage",
        )
        return
    places, conn_id = setup.places, setup.conn_id
    shown = [*shown_settings(places, conn_id), *shown_options(places, conn_id)]
    for row in shown:
        if row.error:
            yield problem(f"{row.error} ({row.source})", "until it is corrected, jobs run without lineage")
    for row in shown_endpoints(places, conn_id):
        if row.error:
            yield warning(
                f"{row.error} ({row.source})", "until it is corrected, the cluster is not asked how a job ended"
            )
    for text in unknown_settings(section(), places.extra, conn_id):
        yield problem(text, f"correct it; {_SEE}")
    for key in places.ignored:
        text = f"{key} in the extra of {conn_id} is not read, because extra_names_code of [{SECTION}] is off"
        yield problem(text, "set it in the section, or remove it")
    yield from _without_effect(setup, shown)
    own = [row for row in shown if row.source != "default"]
    yield ok(f"{len(shown)} settings, {len(own)} of them set; {_SEE}")


def _without_effect(setup: Setup, shown: Iterable[ShownSetting]) -> Iterator[Finding]:
    """Report listeners that get nothing, and settings that a hook takes for something else."""
    for source in filter(lambda one: isinstance(one, str), setup.settings.lineage_listeners):
        module, _, name = source.rpartition(".")
        try:
            getattr(import_module(module), name)
        except Exception as error:
            text = f"lineage_listeners names {source}, which cannot be imported here: {error_text(error)}"
            yield warning(text, "install its package where tasks run, or correct the name: it gets nothing")
    sent = [row.name for row in shown if row.source == _extra(setup.conn_id)]
    if sent and setup.master.startswith("livy://"):
        text = f"the hook of Livy sends each key in the extra of {setup.conn_id} as an HTTP header: {', '.join(sent)}"
        yield warning(text, f"set them in [{SECTION}], or as arguments of the operator")


def shown_settings(places: Places, conn_id: str) -> Iterator[ShownSetting]:
    """Return every setting that has a fixed name."""
    each = list(Settings.each(places.arguments, places.extra, option))
    defaults = {one.name: one.value for one in Settings.each({}, {}, lambda _: None)}
    # The values that count where a setting is empty.
    instead = {
        "lineage_dir": lineage_directory(Settings(**{one.name: one.value for one in each if not one.error})),
        "outbox_dir": str(outbox_directory("").parent),
        "openlineage_jar": DEFAULT_JAR,
    }
    for one in each:
        sources = {
            "argument": "argument of the operator",
            "extra": _extra(conn_id),
            "section": _section_source(one.name, is_default=one.value in ("", defaults[one.name])),
            "default": "default",
        }
        value = instead.get(one.name, one.value) if one.value == "" else one.value
        yield ShownSetting(one.name, _shown(one.name, value), sources[one.place], one.error)


def shown_options(places: Places, conn_id: str) -> Iterator[ShownSetting]:
    """Return the options that name datasets, whatever they are called, and those of our listeners."""
    given = {key.lower(): (key, value, _section_source(key)) for key, value in section().items()}
    given |= {key.lower(): (key, value, _extra(conn_id)) for key, value in places.extra.items()}
    for lower, (key, value, source) in sorted(given.items()):
        if value != "" and (is_naming_key(lower) or lower == _NDJSON_PATH):
            options = {lower: value}
            yield ShownSetting(key, _shown(key, value), source, _complaint(partial(naming_from, options)))


def shown_endpoints(places: Places, conn_id: str) -> Iterator[ShownSetting]:
    """Return the keys that are set of how the status of applications is asked, and what is wrong with them together."""
    for key in ENDPOINT_KEYS:
        if (value := places.extra.get(key)) not in (None, ""):
            yield ShownSetting(key, _shown(key, value), _extra(conn_id))
    mode = str(places.extra.get("deploy-mode") or "client")
    if wrong := _complaint(partial(Endpoints, "local", mode, places.extra, places.status)):
        yield ShownSetting("status endpoints", None, _extra(conn_id), wrong)


def unknown_settings(section: Mapping[str, Any], extra: Mapping[str, Any], conn_id: str) -> Iterator[str]:
    """Report misspelt or misplaced settings, and what was probably meant."""
    for key in sorted(section):
        if key not in _OURS and not is_naming_key(key):
            hint = f"; is {meant!r} meant?" if (meant := _meant(key, _OURS)) else ""
            yield f"{_section_source(key)}: [{SECTION}] has no option {key!r}{hint}"
    # The extra may hold keys of others, which are ignored.
    known = {*_OURS, *ENDPOINT_KEYS, "queue"}  # the last is the Spark provider's
    for key in sorted(map(str, extra)):
        if key not in known and not is_naming_key(key) and (meant := _meant(key, known)):
            yield f"{_extra(conn_id)}: {key!r} is not read; is {meant!r} meant?"
    prefix = _plain(_PREFIX)
    for name in sorted(os.environ):
        beginning = _plain(name)[: len(prefix)]
        if SequenceMatcher(None, beginning, prefix).ratio() > _SIMILARITY_OF_VARIABLES and not name.startswith(_PREFIX):
            yield f"environment variable {name} is not read; ours begin with {_PREFIX}"


def unreadable() -> Iterator[str]:
    """Return the environment variables with which Airflow can read the whole section no more.

    Those that are to give an option by a command or a secret backend, which it takes for options alone that it knows as
    sensitive, and those with small letters.
    """
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and (name.endswith(("_CMD", "_SECRET")) or name != name.upper()):
            yield name


def _section_source(name: str, *, is_default: bool = False) -> str:
    """Say where the text of an option of ``[spark_lineage]`` comes from; a new ``airflow.cfg`` repeats all defaults."""
    from airflow.configuration import AIRFLOW_CONFIG
    from airflow.providers.common.compat.sdk import conf

    variable = f"{_PREFIX}{name.upper()}"
    if variable in os.environ:
        return f"environment variable {variable}"
    # The parser itself is read: Airflow's own method would count declared defaults too, and its as_dict() would run the
    # commands that give the secrets of all other sections.
    if not is_default and ConfigParser.has_section(conf, SECTION) and ConfigParser.has_option(conf, SECTION, name):
        return f"[{SECTION}] in {AIRFLOW_CONFIG}"
    return "default"


def _extra(conn_id: str) -> str:
    return f"extra of the connection {conn_id}"


def _shown(name: str, value: Any) -> Any:
    """Return a value as JSON; a pattern of secrets may be one itself."""
    if name == "redaction_patterns":
        return [MASK] * len(value) if isinstance(value, list | tuple) else MASK if value else value
    return json.loads(json.dumps(value, default=_path, skipkeys=True))


def _path(listener: Any) -> str:
    """Return the import path of a listener, or of what makes one."""
    kind = listener if hasattr(listener, "__qualname__") else type(listener)
    return f"{kind.__module__}.{kind.__qualname__}"


def _complaint(read: Callable[[], object]) -> str:
    try:
        read()
    except (NamingError, SettingError) as error:
        return str(error)
    return ""


def _meant(key: str, known: Iterable[str]) -> str | None:
    # hostnamePatern.prod: the first word alone is ours, what follows is a name of the user's.
    plain = {_plain(name.partition(".")[0]): name for name in (*known, *_NAMING)}
    found = get_close_matches(_plain(key.partition(".")[0]), plain, n=1, cutoff=_SIMILARITY)
    return plain[found[0]] if found else None


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())
