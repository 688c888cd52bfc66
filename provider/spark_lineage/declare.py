"""Declare in a Spark program the datasets that no listener sees: of RDDs, your own sources, calls to other systems.

The module runs in the driver's Python, 3.9 or newer, with the standard library alone. ``LineageSparkSubmitOperator``
adds it to the driver. See ``docs/declare.md``.
"""

from __future__ import annotations

import json
import logging
import os
import pkgutil
import re
import secrets
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    # A URI, an absolute path, or (namespace, name).
    DatasetLike: TypeAlias = "Dataset | str | tuple[str, str]"
    # A Column, or a dataset and the name of its column.
    ColumnLike: TypeAlias = "Column | tuple[DatasetLike, str]"
    # By the name of a column what it was made from.
    Columns: TypeAlias = "Mapping[str, ColumnLike | Iterable[ColumnLike]]"
    # Datasets with those of their columns that are known, in order.
    Sources: TypeAlias = "dict[Dataset, dict[str, None]]"
    Properties: TypeAlias = "Mapping[str, str] | None"

__all__ = ["Column", "Dataset", "column", "dataset", "read", "set_lineage", "wrote"]

DIRECTORY_VARIABLE = "SPARK_LINEAGE_DECLARE_DIR"
TARGET_FILE = "declare.json"
# YARN gives its place to the programs of a container.
_LOG_DIRECTORY = "<LOG_DIR>"

_log = logging.getLogger("spark_lineage.declare")

_PRODUCER = "https://github.com/spark-lineage/airflow-provider-spark-lineage"
_SPEC = "https://openlineage.io/spec"
_INDIRECT = ("INDIRECT", "JOIN", "GROUP_BY", "FILTER", "SORT", "WINDOW", "CONDITIONAL")
_HOWS = ("DIRECT", "IDENTITY", "TRANSFORMATION", "AGGREGATION", *_INDIRECT)
_MODES = ("append", "overwrite")
_PROPERTIES_SCHEMA = (
    "https://raw.githubusercontent.com/spark-lineage/airflow-provider-spark-lineage"
    "/main/docs/facets/1-0-0/PropertiesDatasetFacet.json#/$defs/PropertiesDatasetFacet"
)

# Names as the OpenLineage listener for Spark gives them (1.53.0: FilesystemDatasetUtils, JdbcDatasetUtils).
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/?#]*))?(?P<path>.*)", re.DOTALL)
_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasb": "wasbs", "postgresql": "postgres"}
_CONTAINER_STORES = ("abfs", "abfss", "wasbs")
_OBJECT_STORES = ("s3", "gs", *_CONTAINER_STORES)
_FILE_SYSTEMS = (*_OBJECT_STORES, "file", "hdfs", "dbfs", "viewfs", "webhdfs", "swebhdfs", "oss", "adl", "cosn", "obs")
_DEFAULT_PORTS = {"postgres": 5432, "mysql": 3306, "clickhouse": 8123, "db2": 6789}
_DATABASES = (*_DEFAULT_PORTS, "mariadb", "sqlserver", "oracle", "redshift", "snowflake", "trino")
# No error quotes the text itself: it may hold a password.
_NOT_A_DATASET = (
    "a dataset is a URI (s3a://bucket/orders, postgres://host:5432/db.schema.table, kafka://host:9092/topic), "
    "an absolute path, or a pair (namespace, name)"
)


@dataclass(frozen=True)
class Dataset:
    """An OpenLineage dataset; ``orders["amount"]`` is a column of it."""

    namespace: str
    name: str

    def __getitem__(self, name: str) -> Column:
        return column(self, name)


@dataclass(frozen=True)
class Column:
    """A column that something was made from, and how; made by :func:`column` or ``orders["amount"]``."""

    dataset: Dataset
    name: str
    how: str | None = None
    masking: bool = False


def dataset(name: DatasetLike) -> Dataset:
    """The dataset that a URI, an absolute path or a pair (namespace, name) means, named as Spark's listener does.

    User, password, query and fragment of a URI with a host are left out; a path without a scheme is a local one.

    :raises TypeError: for anything else than text, a pair of texts or a Dataset
    :raises ValueError: for text that names no dataset
    """
    if isinstance(name, Dataset):
        return name
    if isinstance(name, str):
        return _parsed(_text(name, "the name of a dataset"))
    if _is_pair(name):
        return Dataset(_text(name[0], "the namespace of a dataset"), _text(name[1], "the name of a dataset"))
    raise TypeError(f"{_NOT_A_DATASET}; this is of type {type(name).__name__}")


def column(of: DatasetLike, name: str, how: str | None = None, *, masking: bool = False) -> Column:
    """Return a column, as a source of another column or of a whole dataset.

    :param how: DIRECT (the result is made from its values), or more exactly IDENTITY, TRANSFORMATION, AGGREGATION;
        INDIRECT (it decides which values are used), or JOIN, GROUP_BY, FILTER, SORT, WINDOW, CONDITIONAL. The default
        is DIRECT for a column, INDIRECT for a whole dataset.
    :param masking: whether its values cannot be recovered from the result (a hash, a count)
    :raises ValueError: for an invalid argument, TypeError for another type
    """
    if how is not None and how not in _HOWS:
        raise ValueError(f"how is {how!r}; give one of {', '.join(_HOWS)}")
    return Column(dataset(of), _text(name, "the name of a column"), how, bool(masking))


def read(name: DatasetLike, columns: Iterable[str] | None = None, *, properties: Properties = None) -> Dataset:
    """Declare that the program reads a dataset, and which columns; call this before the program overwrites it.

    :param properties: what else you want to state of it, as texts by their names; the last declaration counts
    :return: the dataset, whose columns you can name as ``dataset["column"]``
    :raises ValueError: for invalid arguments, TypeError for other types; nothing is written then
    """
    source, used, stated = dataset(name), _names(columns), _properties(properties)
    _program.reads = _joined(_program.reads, {source: used})
    _program.record("read", {source: used}, [], stated)
    return source


def wrote(
    name: DatasetLike,
    columns: Columns | Iterable[str] | None = None,
    *,
    inputs: Iterable[DatasetLike] | None = None,
    whole: Iterable[ColumnLike] | None = None,
    mode: str | None = None,
    rows: int | None = None,
    properties: Properties = None,
) -> Dataset:
    """Declare that the program has written a dataset; call this after the write has succeeded.

    :param columns: the names of its columns, or a mapping from these names to their sources
    :param inputs: its inputs, in addition to the datasets of the named columns; by default all datasets that this
        program has declared as read so far
    :param whole: columns that decide which rows there are (filters, joins, groupings)
    :param mode: ``append`` or ``overwrite``, as in Spark; None if unknown
    :param rows: how many rows were written
    :param properties: what else you want to state of it, as texts by their names; the last declaration counts
    :return: the dataset, whose columns you can name as ``dataset["column"]``
    :raises ValueError: for invalid arguments, TypeError for other types; nothing is written then
    """
    written = _Written(dataset(name), columns, whole, mode, rows=rows, properties=properties)
    sources = _program.reads if inputs is None else {dataset(one): {} for one in _items(inputs, "inputs")}
    _program.record("wrote", _joined(sources, written.sources), [written])
    return written.dataset


def set_lineage(
    *,
    inputs: Iterable[DatasetLike] | None = None,
    outputs: Iterable[DatasetLike] | None = None,
    columns: Columns | Iterable[str] | None = None,
) -> None:
    """Declare the inputs and outputs of a step that has just succeeded; each input feeds each output.

    :param columns: of the output, as in :func:`wrote`; for several outputs call this once for each
    :raises ValueError: for invalid arguments, TypeError for other types; nothing is written then
    """
    sources: Sources = {dataset(one): {} for one in _items(inputs or (), "inputs")}
    targets = list(dict.fromkeys(dataset(one) for one in _items(outputs or (), "outputs")))
    if not sources and not targets:
        raise ValueError("set_lineage names neither inputs nor outputs")
    if columns is not None and len(targets) != 1:
        raise ValueError(f"columns of {len(targets)} outputs; call set_lineage once for each output that has columns")
    written = [_Written(one, columns) for one in targets]
    for one in written:
        sources = _joined(sources, one.sources)
    _program.reads = _joined(_program.reads, sources)
    _program.record("set_lineage", sources, written)


class _Written:
    """A declared output, checked."""

    def __init__(
        self,
        target: Dataset,
        columns: Any,
        whole: Any = (),
        mode: str | None = None,
        *,
        rows: int | None = None,
        properties: Properties = None,
    ) -> None:
        if mode is not None and mode not in _MODES:
            raise ValueError(f"mode is {mode!r}; give one of {', '.join(_MODES)}")
        self.dataset = target
        by_name = columns if isinstance(columns, Mapping) else dict.fromkeys(_names(columns), ())
        self.made_from = {
            _text(name, "a column"): _columns(made, f"columns[{name!r}]") for name, made in by_name.items()
        }
        self.whole = _columns(whole or (), "whole")
        for one in self.whole:
            if one.how not in (None, *_INDIRECT):
                raise ValueError(f"what decides about the whole dataset is INDIRECT, not {one.how}")
        self.mode = mode
        if isinstance(rows, bool) or not isinstance(rows, (int, type(None))):
            raise TypeError(f"rows is of type {type(rows).__name__}; give an int")
        if rows is not None and rows < 0:
            raise ValueError(f"rows is {rows}; give 0 or more")
        self.rows = rows
        self.properties = _properties(properties)

    @property
    def sources(self) -> Sources:
        """The datasets and columns that it names as what it was made from."""
        sources: Sources = {}
        for one in (*self.whole, *(one for columns in self.made_from.values() for one in columns)):
            sources.setdefault(one.dataset, {})[one.name] = None
        return sources

    def output(self) -> dict[str, Any]:
        """Return it as an OpenLineage ``OutputDataset``."""
        facets = {**_schema(self.made_from), **self.properties}
        fields = {
            name: {"inputFields": [_input_field(one, "DIRECT") for one in columns]}
            for name, columns in self.made_from.items()
            if columns
        }
        whole = {"dataset": [_input_field(one, "INDIRECT") for one in self.whole]} if self.whole else {}
        if fields or whole:
            facets["columnLineage"] = _facet("ColumnLineageDatasetFacet", "1-2-0", fields=fields, **whole)
        if self.mode == "overwrite":
            state = {"lifecycleStateChange": "OVERWRITE"}
            facets["lifecycleStateChange"] = _facet("LifecycleStateChangeDatasetFacet", "1-0-1", **state)
        # Without a number it still says that data was written, and takes nothing from a number that Spark gave.
        known = {} if self.rows is None else {"rowCount": self.rows}
        statistics = _facet("OutputStatisticsOutputDatasetFacet", "1-0-2", **known)
        return {**vars(self.dataset), "facets": facets, "outputFacets": {"outputStatistics": statistics}}


class _Program:
    """What this program has declared so far, and where it is written."""

    def __init__(self) -> None:
        self.reads: Sources = {}
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._pid = 0
        self._file = ""
        self.target: Mapping[str, Any] | None = None
        """Where an operator has this process declare; None where the program finds out."""

    def record(
        self, call: str, sources: Sources, written: list[_Written], stated: Mapping[str, Any] | None = None
    ) -> None:
        """Append a run of its own to the lineage; errors are only logged.

        :param stated: more facets of the sources
        """
        context = getattr(sys.modules.get("pyspark"), "TaskContext", None)
        if context is not None and context.get() is not None:
            self._report(
                logging.INFO, "What a task declares on an executor is left out: declare lineage in the driver."
            )
            return
        try:
            target = self.target or _target()
            if target is None:
                self._report(logging.INFO, "Declared lineage is left out: not run by an operator with lineage.")
                return
            inputs = [
                {**vars(one), "facets": {**_schema(columns), **(stated or {})}} for one, columns in sources.items()
            ]
            run_id = _new_run_id()
            for event_type, outputs in (("START", []), ("COMPLETE", [one.output() for one in written])):
                event = _event(event_type, call, target, run_id)
                self._append(target["directory"], {**event, "inputs": inputs, "outputs": outputs})
        except (OSError, ValueError, LookupError) as error:
            self._report(logging.WARNING, "Declared lineage is lost, here and maybe later, but nothing else: %s", error)

    def _append(self, directory: str, event: dict[str, Any]) -> None:
        line = json.dumps(event, separators=(",", ":")).encode("ascii") + b"\n"
        if not directory:
            # The driver's log, which has the listener's events as well.
            os.write(sys.stderr.fileno(), b"ConsoleTransport: " + line)
            return
        with self._lock:
            # Two writers would tear each other's lines, and a fork is another writer.
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._file = f"{directory}/declared-{self._pid}-{secrets.token_hex(4)}.ndjson"
                if directory == _LOG_DIRECTORY:
                    # Its reader cannot list the files there.
                    self._file = f"{os.environ['LOG_DIRS'].partition(',')[0]}/declared.ndjson"
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                if os.write(descriptor, line) != len(line):
                    self._pid = 0  # or what comes next would be joined to a torn line
                    raise OSError(f"{self._file} has no room for {len(line)} bytes")
            finally:
                os.close(descriptor)

    def _report(self, level: int, text: str, *values: object) -> None:
        if text not in self._said:
            self._said.add(text)
            _log.log(level, text, *values)


_program = _Program()


def set_target(target: Mapping[str, str] | None) -> None:
    """Have this process declare for one application, as ``declare.json`` says it elsewhere; None: no more."""
    _program.target = target


def _target() -> dict[str, Any] | None:
    """Return where to write and for which application: as the operator put it beside this module, else as it is set."""
    # The package may be installed as well: then it is in several places.
    for place in getattr(sys.modules.get(__name__.rpartition(".")[0]), "__path__", ()):
        importer: Any = pkgutil.get_importer(place)
        with suppress(OSError, ValueError, AttributeError):
            target: dict[str, Any] = json.loads(importer.get_data(f"{place}/{TARGET_FILE}"))
            return target
    directory = os.environ.get(DIRECTORY_VARIABLE)
    name = os.path.basename(sys.argv[0]) or "python"  # noqa: PTH119  (all that is needed of pathlib)
    return {"directory": directory, "namespace": "default", "application_name": name} if directory else None


def _event(event_type: str, call: str, target: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    namespace, application = target["namespace"], target["application_name"]
    facets = {}
    if target.get("application_run_id"):
        parent = {"run": {"runId": target["application_run_id"]}, "job": {"namespace": namespace, "name": application}}
        facets["parent"] = _facet("ParentRunFacet", "1-2-0", **parent)
    job_type = _facet("JobTypeJobFacet", "2-0-4", processingType="BATCH", integration="SPARK", jobType="DECLARED")
    return {
        "eventType": event_type,
        "eventTime": datetime.now(timezone.utc).isoformat(timespec="microseconds"),  # noqa: UP017  (new in 3.11)
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run_id, "facets": facets},
        "job": {"namespace": namespace, "name": f"{application}.declare.{call}", "facets": {"jobType": job_type}},
    }


def _new_run_id() -> str:
    """Return a UUIDv7: it begins with the time, so that later runs have greater ids."""
    random = secrets.randbits(80) & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62
    return str(uuid.UUID(int=time.time_ns() // 1_000_000 << 80 | random))


def _facet(name: str, version: str, **content: Any) -> dict[str, Any]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}", **content}


def _schema(columns: Iterable[str]) -> dict[str, Any]:
    fields = [{"name": name} for name in columns]
    return {"schema": _facet("SchemaDatasetFacet", "1-2-0", fields=fields)} if fields else {}


def _properties(properties: Properties) -> dict[str, Any]:
    """Return the facet of the user's own properties, checked."""
    if not isinstance(properties, (Mapping, type(None))):
        raise TypeError(f"properties is of type {type(properties).__name__}; give a mapping from text to text")
    stated = {
        _text(key, "a property"): _text(value, f"properties[{key!r}]") for key, value in (properties or {}).items()
    }
    facet = {"_producer": _PRODUCER, "_schemaURL": _PROPERTIES_SCHEMA, "properties": stated}
    return {"sparkLineage_properties": facet} if stated else {}


def _input_field(source: Column, default: str) -> dict[str, Any]:
    how = source.how or default
    kind = "INDIRECT" if how in _INDIRECT else "DIRECT"
    subtype = {} if how == kind else {"subtype": how}
    transformation = {"type": kind, **subtype, "masking": source.masking}
    return {**vars(source.dataset), "field": source.name, "transformations": [transformation]}


def _parsed(text: str) -> Dataset:
    uri = _URI.fullmatch("file:" + text if text.startswith("/") else text)
    if uri is None:
        raise ValueError(_NOT_A_DATASET)
    scheme = _SAME_SCHEMES.get(uri["scheme"].lower(), uri["scheme"].lower())
    path = uri["path"]
    user, _, host = (uri["authority"] or "").rpartition("@")
    if host:
        path = re.split(r"[?#]", path, maxsplit=1)[0]
    if scheme in _FILE_SYSTEMS and (host or path.startswith("/")):
        # In the stores of Azure the container stands where others have the user.
        place = f"{user.partition(':')[0]}@{host}" if user and scheme in _CONTAINER_STORES else host
        path = path.rstrip("/") or "/"
        name = path.lstrip("/") or "/" if scheme in _OBJECT_STORES else path
        return Dataset(f"{scheme}://{place}" if place and scheme != "file" else scheme, name)
    if not (host and path.strip("/")):
        raise ValueError(_NOT_A_DATASET)
    if scheme in _DEFAULT_PORTS and not re.search(r":\d+$", host):
        host = f"{host}:{_DEFAULT_PORTS[scheme]}"
    if scheme in _DATABASES:
        path = path.strip("/").replace("/", ".")
    return Dataset(f"{scheme}://{host}", path.strip("/") if scheme == "kafka" else path)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is of type {type(value).__name__}; give text")
    if not value.strip():
        raise ValueError(f"{what} is empty")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{what} holds a character that UTF-8 cannot hold")
    return value


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2  # noqa: PLR2004  (what a pair is)


def _items(values: Any, what: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{what} is of type {type(values).__name__}; give a list")
    return list(values)


def _names(columns: Any) -> dict[str, None]:
    return {_text(name, "a column"): None for name in _items(() if columns is None else columns, "columns")}


def _joined(left: Sources, right: Sources) -> Sources:
    return {one: {**left.get(one, {}), **right.get(one, {})} for one in (*left, *right)}


def _columns(values: Any, what: str) -> list[Column]:
    is_one = isinstance(values, Column) or (_is_pair(values) and isinstance(values[1], str))
    found = []
    for one in [values] if is_one else _items(values, what):
        if _is_pair(one):
            found.append(column(*one))
        elif isinstance(one, Column):
            found.append(one)
        else:
            raise TypeError(
                f"{what} holds {type(one).__name__}; give columns, as in column('s3a://b/orders', 'amount')"
            )
    return found
