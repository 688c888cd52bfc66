"""The tables that all programs read: small, of several formats, and with columns of many types."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from generator.model import Column, Edges, Frame
from generator.names import bare

_DAYS = [date(2024, 1, 5), date(2024, 3, 9), date(2024, 3, 10), date(2025, 7, 1), date(2025, 11, 30)]
_WORDS = ["paid", "open", "late", "north", "south", "alpha"]
_ROWS = 12

# Name of the table, format, and its columns.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "orders": ("csv", {
        "order_id": "int", "customer_id": "int", "amount": "double", "status": "string", "day": "date",
    }),
    "customers": ("parquet", {
        "cid": "bigint", "name": "string", "country": "string", "since": "date",
        "address": "struct<city:string,zip:string>",
    }),
    "products": ("json", {
        "pid": "int", "title": "string", "price": "double", "attrs": "map<string,int>", "ratings": "array<int>",
        "labels": "array<string>",
    }),
    "events": ("json", {
        "eid": "int", "who": "int", "kind": "string", "at": "date", "payload": "string", "score": "double",
        "items": "array<struct<sku:string,qty:int>>",
    }),
    "rates": ("csv", {"currency": "string", "rate": "double", "valid": "date", "grade": "int"}),
    "staff": ("parquet", {"sid": "bigint", "boss_id": "bigint", "team": "string", "pay": "double"}),
    "sheet": ("parquet", {
        "`No #1, old`": "int", "`Amount, USD`": "double", "`price AS sold`": "double", "`THEN [`": "string",
        "`Who (2)`": "string", "`since `": "date", "`n.o`": "bigint", "`Tags, all`": "array<string>",
    }),
    "book": ("csv", {"`#8`": "int", "`sum(w)`": "double", "`CASE x`": "string", "`a#1, b#2`": "int", "`from`": "date"}),
}  # fmt: skip


def table(name: str) -> Frame:
    """The frame that reading the table gives."""
    return Frame(
        {
            column: Column(
                kind, Edges(frozenset({f"{name}.{bare(column)}"})), fields(kind, f"{name}.{column}"), is_nullable=True
            )
            for column, kind in TABLES[name][1].items()
        },
        feeds=frozenset({name}),
    )


def fields(kind: str, source: str) -> dict[str, tuple[str, Edges]]:
    """The fields of a struct of simple types; all come from the one column."""
    if not kind.startswith("struct<"):
        return {}
    pairs = (part.split(":") for part in kind.removeprefix("struct<").removesuffix(">").split(","))
    return {name: (of, Edges(frozenset({source}))) for name, of in pairs}


def place(name: str) -> str:
    """Where the table is, below the directory that programs run in."""
    return f"in/{name}.{TABLES[name][0]}"


def reading(name: str) -> str:
    """The Python expression that reads the table."""
    form, columns = TABLES[name]
    schema = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    if form == "csv":
        return f'spark.read.csv("{place(name)}", header=True, schema="{schema}")'
    return (
        f'spark.read.json("{place(name)}", schema="{schema}")'
        if form == "json"
        else f'spark.read.parquet("{place(name)}")'
    )


def files() -> dict[str, str]:
    """The text files of the tables."""
    return {place(name): _text(name) for name, (form, _) in TABLES.items() if form != "parquet"}


def parquet() -> dict[str, list[dict[str, Any]]]:
    """The rows of the Parquet files."""
    return {place(name): _rows(name) for name, (form, _) in TABLES.items() if form == "parquet"}


def _rows(name: str) -> list[dict[str, Any]]:
    columns = TABLES[name][1]
    return [
        {bare(column): _value(kind, row + shift) for shift, (column, kind) in enumerate(columns.items())}
        for row in range(_ROWS)
    ]


def _value(kind: str, number: int) -> Any:
    pair = [_WORDS[number % 5], _WORDS[number % 3]]
    values: dict[str, Any] = {
        "int": number % 7,
        "bigint": number % 7,
        "double": number * 2.5,
        "string": _WORDS[number % len(_WORDS)],
        "date": _DAYS[number % len(_DAYS)],
        "array<int>": [number % 5, number % 3],
        "array<string>": pair,
        "map<string,int>": {pair[0]: number, "size": number % 4},
        "struct<city:string,zip:string>": {"city": pair[0], "zip": f"0{number}"},
        "array<struct<sku:string,qty:int>>": [{"sku": pair[0], "qty": number % 4}, {"sku": "x", "qty": 1}],
    }
    return values[kind]


def _text(name: str) -> str:
    form, columns = TABLES[name]
    rows = _rows(name)
    if "payload" in columns:
        rows = [row | {"payload": json.dumps({"a": index, "b": "x"})} for index, row in enumerate(rows)]
    if form == "json":
        return "".join(json.dumps(row, default=str) + "\n" for row in rows)
    header = ",".join(f'"{bare(column)}"' for column in columns)
    return "\n".join([header, *(",".join(str(each) for each in row.values()) for row in rows)]) + "\n"
