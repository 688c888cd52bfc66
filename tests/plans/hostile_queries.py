"""Makes plans of queries with odd names and literals, and their truth: ``fixtures/plans/hostile.jsonl.zst``.

``python tests/plans/hostile_queries.py FILE DIR`` has Spark plan each query over empty tables in ``DIR``, and run none.
A line of the file is a query: its text, its plan, the names of its columns, for each column by position what it is made
from, and what decides on the rows. Table ``t`` has the columns ``{n}`` (a text), ``{m}`` (a number), ``k``, ``f``,
``d``, ``arr``; table ``u`` has ``{n}``, ``{m}``, ``w``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

NAMES = (
    "plain",
    "Amount, EUR",
    "cost AS planned",
    "No #12, old",
    "No #12",
    "a#1",
    "x#",
    "#7",
    "q(",
    "q)",
    "sum(",
    "count(1)",
    "sum(v)",
    "CAST(b AS INT)",
    "[x",
    "x]",
    "{x",
    "x}",
    "a`b",
    "it's",
    'he "x"',
    "a.b",
    "a b ",
    " lead",
    "line\nbreak",
    "two\n\nlines",
    "\n\n(1) Scan parquet",
    "Output [1]: [zzz#1]",
    "THEN (",
    "CASE WHEN",
    "x THEN y",
    " AS ",
    "x AS y#3",
    "x AS y#3L, z",
    "a,b",
    ", ",
    "名前, é",
    "select",
    "null",
    "END",
    " END ",
    "NULLS FIRST]",
    "], [",
    "false, [e",
    "a=b",
    "a -> b",
    "%",
    "\\",
    "tab\tx",
    "FILTER (WHERE",
    "partial_sum(x)",
    "first(x)",
    "distinct x",
    "subquery#3",
    "#12L, ",
    "Subquery subquery#1, [id=#2]",
    "lambda x_0#3",
    "... 3 more fields",
    "gid",
    "_metadata",
    "isnull(a)",
    "x: int,y",
    "coalesce(a, b)",
    "if (a) b else c",
    "(x + y)",
    "windowspecdefinition(",
    "md5(x)",
    "a AND b",
    "b#9 AS c",
)
LITERALS = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "`",
    ", ",
    " AS d#1, x#2 AS y",
    "\n\n(1) Scan parquet \nOutput [1]: [zzz#1]\n",
    "\n\n\n===== Subqueries =====\n",
    '"',
    "NULLS FIRST], [",
    "THEN (",
    " END",
    "CASE WHEN",
    "#1",
    "k#2",
    "\nInput [1]: [a#1]",
    " FILTER (WHERE",
    "), (",
    "md5(",
    "if (",
    " else ",
    "x ELSE y",
    "coalesce(",
    " WHEN ",
    "],",
    "- (",
    "'",
)
# SQL, the columns by position, what decides on the rows. D: DIRECT, I: INDIRECT.
_N, _M, _UN, _UM = "Dt.{n}", "Dt.{m}", "Du.{n}", "Du.{m}"
QUERIES: dict[str, tuple[str, list[str], str]] = {
    "copy": ("SELECT {qn} AS x, {qm}, k FROM t", [_N, _M, "Dt.k"], ""),
    "swap": ("SELECT k AS {qn}, {qn} AS k, {qm} AS {qn2} FROM t", ["Dt.k", _N, _M], ""),
    "unaliased": ("SELECT upper({qn}), {qm} * 2, k + {qm} FROM t", [_N, _M, f"Dt.k {_M}"], ""),
    "filter": ("SELECT {qm} FROM t WHERE {qn} = 'x' AND k > 3", [_M], "t.{n} t.k"),
    "group": ("SELECT {qn}, sum({qm}) FROM t GROUP BY {qn}", [_N, _M], "t.{n}"),
    "cast": ("SELECT k, sum(CAST({qn} AS INT)), max({qm}) FROM t GROUP BY k", ["Dt.k", _N, _M], "t.k"),
    "distinct_count": ("SELECT k, count(DISTINCT CAST({qn} AS DATE)) FROM t GROUP BY k", ["Dt.k", _N], "t.k"),
    "two_distincts": ("SELECT k, count(DISTINCT {qn}), sum(DISTINCT {qm}) FROM t GROUP BY k", ["Dt.k", _N, _M], "t.k"),
    "agg_filter": ("SELECT sum({qm}) FILTER (WHERE {qn} = 'x'), count(*) FROM t", [f"{_M} It.{{n}}", ""], ""),
    "having": ("SELECT {qn} FROM t GROUP BY {qn} HAVING sum({qm}) > 3", [_N], "t.{n} t.{m}"),
    "distinct": ("SELECT DISTINCT {qn}, {qm} FROM t", [_N, _M], "t.{n} t.{m}"),
    "row_number": (
        "SELECT k, row_number() OVER (PARTITION BY {qn} ORDER BY {qm}) FROM t",
        ["Dt.k", "It.{n} It.{m}"],
        "",
    ),
    "window_sum": (
        "SELECT sum({qm}) OVER (PARTITION BY {qn} ORDER BY k), k FROM t",
        [f"{_M} It.{{n}} It.k", "Dt.k"],
        "",
    ),
    "lag": ("SELECT lag({qn}, 1, 'z') OVER (PARTITION BY k ORDER BY {qm}) AS p FROM t", [f"{_N} It.k It.{{m}}"], ""),
    "sort": ("SELECT {qn} AS {qn2}, k FROM t ORDER BY {qm}, {qn}", [_N, "Dt.k"], "t.{m} t.{n}"),
    "top": ("SELECT {qn}, k + 1 FROM t ORDER BY {qm} LIMIT 5", [_N, "Dt.k"], "t.{m}"),
    "join": (
        "SELECT a.{qn}, b.{qm}, w FROM t a JOIN u b ON a.{qn} = b.{qn} AND a.{qm} > b.{qm}",
        [_N, _UM, "Du.w"],
        "t.{n} u.{n} t.{m} u.{m}",
    ),
    "full_join": (
        "SELECT {qn}, a.k, b.w FROM t a FULL JOIN u b USING ({qn})",
        [f"{_N} {_UN} It.{{n}} Iu.{{n}}", "Dt.k", "Du.w"],
        "t.{n} u.{n}",
    ),
    "in": ("SELECT k FROM t WHERE {qn} IN (SELECT {qn} FROM u)", ["Dt.k"], "t.{n} u.{n}"),
    "not_exists": (
        "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.{qn} = t.{qn} AND u.{qm} > t.{qm})",
        ["Dt.k"],
        "t.{n} u.{n} t.{m} u.{m}",
    ),
    "exists_column": (
        "SELECT k, {qn} IN (SELECT {qn} FROM u) FROM t",
        ["Dt.k", "?"],
        "t.{n} u.{n}",
    ),
    "union": ("SELECT {qn} AS {qn2}, k FROM t UNION ALL SELECT {qn}, w FROM u", [f"{_N} {_UN}", "Dt.k Du.w"], ""),
    "union_distinct": (
        "SELECT {qn} FROM t UNION SELECT {qn} FROM u",
        [f"{_N} {_UN}"],
        "t.{n} u.{n}",
    ),
    "explode": ("SELECT k, explode(split({qn}, ',')) FROM t", ["Dt.k", _N], "t.{n}"),
    "explode_array": ("SELECT {qn}, e FROM t LATERAL VIEW OUTER posexplode(arr) x AS p, e", [_N, "Dt.arr"], ""),
    "stack": (
        "SELECT k, stack(2, 'A', {qn}, 'B', CAST({qm} AS STRING)) AS (l, {qn2}) FROM t",
        ["Dt.k", "", f"{_N} {_M}"],
        "",
    ),
    "inline": (
        "SELECT k, inline(array(struct({qn} AS a, {qm} AS b), struct('x' AS a, 2.0D AS b))) FROM t",
        ["Dt.k", _N, _M],
        "?",
    ),
    "unpivot": (
        """SELECT * FROM (SELECT k, CAST({qm} AS DOUBLE) {qm}, CAST(k AS DOUBLE) AS {qn2} FROM t)
        UNPIVOT (val FOR nam IN ({qm}, {qn2}))""",
        ["Dt.k", "", f"{_M} Dt.k"],
        "?",
    ),
    "rollup": (
        "SELECT {qn}, k, sum({qm}) FROM t GROUP BY ROLLUP ({qn}, k)",
        [_N, "Dt.k", _M],
        "t.{n} t.k",
    ),
    "cube": (
        "SELECT CAST({qn} AS INT), k, count(1) FROM t GROUP BY CUBE (CAST({qn} AS INT), k)",
        [_N, "Dt.k", ""],
        "t.{n} t.k",
    ),
    "scalar": ("SELECT {qn}, (SELECT max({qm}) FROM u) FROM t", [_N, _UM], ""),
    "scalars": (
        "SELECT k, (SELECT max({qm}) FROM u) AS a, (SELECT min({qn}) FROM u) AS b FROM t",
        ["Dt.k", _UM, _UN],
        "",
    ),
    "correlated": (
        "SELECT {qn}, (SELECT sum(u.{qm}) FROM u WHERE u.{qn} = t.{qn}) FROM t",
        [_N, f"{_UM}"],
        "t.{n} u.{n}",
    ),
    "case": (
        "SELECT CASE WHEN f THEN (k) * {qm} ELSE 0 END, k FROM t",
        [f"It.f Dt.k {_M}", "Dt.k"],
        "",
    ),
    "case_value": (
        "SELECT CASE {qn} WHEN 'a' THEN {qm} WHEN 'b' THEN k END AS {qn2} FROM t",
        [f"It.{{n}} {_M} Dt.k"],
        "",
    ),
    "if": (
        "SELECT if({qn} = 'x', {qm}, k), coalesce({qn}, d) FROM t",
        [f"It.{{n}} {_M} Dt.k", f"{_N} It.{{n}} Dt.d It.d"],
        "",
    ),
    "date": ("SELECT to_date({qn}), date_trunc('month', {qn}) FROM t", [_N, _N], ""),
    "lambda": (
        "SELECT transform(arr, x -> concat(x, {qn})), filter(arr, x -> x > {qn}) FROM t",
        [f"Dt.arr {_N}"] * 2,
        "",
    ),
    "struct": (
        "SELECT to_json(named_struct('a', {qn}, 'b', {qm})), named_struct('c', {qn}).c FROM t",
        [f"{_N} {_M}", _N],
        "",
    ),
    "except": ("SELECT {qn} FROM t EXCEPT SELECT {qn} FROM u", [_N], "t.{n} u.{n}"),
    "intersect": ("SELECT {qn} FROM t INTERSECT SELECT {qn} FROM u", [_N], "t.{n} u.{n}"),
    "window_over_group": (
        "SELECT {qn}, sum(sum({qm})) OVER (ORDER BY {qn}) FROM t GROUP BY {qn}",
        [_N, f"{_M} It.{{n}}"],
        "t.{n}",
    ),
    "first": (
        "SELECT k, first({qn}, true), percentile_approx({qm}, 0.5), collect_list({qn}) FROM t GROUP BY k",
        ["Dt.k", _N, _M, _N],
        "t.k",
    ),
    "md5": ("SELECT md5({qn}), hash({qn}, k) FROM t", [_N, f"{_N} Dt.k"], ""),
    "cross": ("SELECT t.{qn}, u.{qm} FROM t, u WHERE t.{qm} < u.{qm}", [_N, _UM], "t.{m} u.{m}"),
    "name_literal": ("SELECT concat({qn}, ', ', 'k#1'), '{n}' FROM t", [_N, ""], ""),
    "cte": (
        """WITH c AS (SELECT {qn}, sum({qm}) AS s FROM t GROUP BY {qn})
        SELECT a.{qn}, b.s FROM c a JOIN c b ON a.s = b.s""",
        [_N, _M],
        "t.{n} t.{m}",
    ),
    "group_expression": ("SELECT upper({qn}), count({qm}) FROM t GROUP BY upper({qn})", [_N, _M], "t.{n}"),
    "corr": ("SELECT corr({qm}, k), max_by({qn}, {qm}) FROM t", [f"{_M} Dt.k", f"{_N} ?t.{{m}}"], ""),
    "nulls": (
        "SELECT {qn} IS NULL, NOT f, -{qm}, {qn} LIKE '%x', {qn} IN ('a', 'b') FROM t",
        [_N, "Dt.f", _M, _N, _N],
        "",
    ),
}
# With a literal in place of {l}.
OF_LITERALS: dict[str, tuple[str, list[str], str]] = {
    "function": ("SELECT substring_index(n, {l}, 1) AS d, m, k FROM t", ["Dt.n", "Dt.m", "Dt.k"], ""),
    "unaliased": ("SELECT concat(n, {l}, d), m * 2 FROM t", ["Dt.n Dt.d", "Dt.m"], ""),
    "first": ("SELECT concat({l}, n), {l}, k FROM t", ["Dt.n", "", "Dt.k"], ""),
    "filter": ("SELECT k AS i, m AS a FROM t WHERE n LIKE {l} AND d <> {l} AND k > 0", ["Dt.k", "Dt.m"], "t.n t.d t.k"),
    "case": (
        "SELECT CASE WHEN n LIKE {l} THEN d WHEN n = ']' THEN concat(d, {l}) ELSE {l} END AS d, k FROM t",
        ["It.n Dt.d", "Dt.k"],
        "",
    ),
    "if": ("SELECT if(n = {l}, d, {l}) AS x, coalesce(n, {l}) AS y, k FROM t", ["It.n Dt.d", "Dt.n It.n", "Dt.k"], ""),
    "group": (
        "SELECT substring_index(n, {l}, 1), sum(m), max(k) FROM t GROUP BY substring_index(n, {l}, 1), d",
        ["Dt.n", "Dt.m", "Dt.k"],
        "t.n t.d",
    ),
    "aggregate": (
        "SELECT k, concat_ws({l}, collect_list(n)) AS c, max(concat(n, {l})) FROM t GROUP BY k",
        ["Dt.k", "Dt.n", "Dt.n"],
        "t.k",
    ),
    "agg_filter": ("SELECT sum(m) FILTER (WHERE n = {l}), count(*) FROM t", ["Dt.m It.n", ""], ""),
    "join": (
        """SELECT t.k AS i, u.w AS x, replace(t.n, {l}, '') AS r FROM t JOIN u
        ON replace(t.n, {l}, '') = u.n AND t.m = u.m""",
        ["Dt.k", "Du.w", "Dt.n"],
        "t.n u.n t.m u.m",
    ),
    "window": (
        """SELECT row_number() OVER (PARTITION BY replace(n, {l}, '') ORDER BY m) AS rn,
        lag(d, 1, {l}) OVER (PARTITION BY k ORDER BY m) AS p, k FROM t""",
        ["It.n It.m", "Dt.d It.k It.m", "Dt.k"],
        "",
    ),
    "union": (
        "SELECT replace(n, {l}, ''), k FROM t UNION ALL SELECT concat(n, {l}), w FROM u",
        ["Dt.n Du.n", "Dt.k Du.w"],
        "",
    ),
    "explode": ("SELECT explode(split(n, {l})) AS p, k AS i, m AS a FROM t", ["Dt.n", "Dt.k", "Dt.m"], "t.n"),
    "stack": ("SELECT k, stack(2, {l}, n, 'B', d) AS (l, v) FROM t", ["Dt.k", "", "Dt.n Dt.d"], ""),
    "top": ("SELECT n, k FROM t ORDER BY concat(d, {l}), m LIMIT 5", ["Dt.n", "Dt.k"], "t.d t.m"),
    "scalar": ("SELECT n, (SELECT max(concat(n, {l})) FROM u WHERE n <> {l}) AS x FROM t", ["Dt.n", "Du.n ?u.n"], ""),
    "struct": ("SELECT named_struct('a', {l}, 'b', n) AS s, concat(d, md5({l})) FROM t", ["Dt.n", "Dt.d"], ""),
    "in": ("SELECT n IN ({l}, 'x'), n IN ({l}, '1', '2') FROM t", ["Dt.n", "Dt.n"], ""),
    "rollup": (
        "SELECT concat(n, {l}), k, sum(m) FROM t GROUP BY ROLLUP (concat(n, {l}), k)",
        ["Dt.n", "Dt.k", "Dt.m"],
        "t.n t.k",
    ),
    "date": ("SELECT date_format(d, {l}) AS x, CASE WHEN f THEN {l} ELSE n END AS y FROM t", ["Dt.d", "It.f Dt.n"], ""),
}


def main(target: Path, home: Path) -> None:
    """Write the plans of all queries."""
    from pyspark.sql import SparkSession
    from pyspark.sql.types import ArrayType, BooleanType, DoubleType, IntegerType, StringType, StructField, StructType

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.maxPlanStringLength", str(2**31 - 33))
        .config("spark.sql.debug.maxToStringFields", "5000")
        .config("spark.sql.ansi.enabled", "false")
        .getOrCreate()
    )
    types: dict[str, Any] = {"k": IntegerType(), "f": BooleanType(), "d": StringType(), "arr": ArrayType(StringType())}

    def view(name: str, columns: dict[str, Any]) -> None:
        (home / name).mkdir(parents=True, exist_ok=True)
        schema = StructType([StructField(column, kind) for column, kind in columns.items()])
        spark.read.schema(schema).parquet(str(home / name)).createOrReplaceTempView(name)

    formatted = spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")

    def plan(frame: Any) -> str:
        return str(frame._jdf.queryExecution().explainString(formatted)).replace(str(home), "/data")

    def queries() -> Iterator[tuple[str, str, str, list[str], str, str, str]]:
        for name in NAMES:
            second = f"{name} B"
            view("t", {name: StringType(), second: DoubleType(), **types})
            view("u", {name: StringType(), second: DoubleType(), "w": IntegerType()})
            quoted = {"qn": _quoted(name), "qm": _quoted(second), "qn2": _quoted(f"{name} C")}
            for kind, (sql, columns, wide) in QUERIES.items():
                text = sql.format(n=name.replace("\\", "\\\\").replace("'", "\\'"), **quoted)
                yield kind, name, text, columns, wide, name, second
        view("t", {"n": StringType(), "m": DoubleType(), **types})
        view("u", {"n": StringType(), "m": DoubleType(), "w": IntegerType()})
        for literal in LITERALS:
            escaped = literal.replace("\\", "\\\\").replace("'", "\\'")
            for kind, (sql, columns, wide) in OF_LITERALS.items():
                yield f"literal_{kind}", literal, sql.format(l=f"'{escaped}'"), columns, wide, "n", "m"

    lines = []
    for number, (kind, odd, sql, columns, wide, name, second) in enumerate(queries()):
        # A consumer lists the columns of a plan's root, as a write does, or nothing does.
        spark.conf.set("spark.sql.adaptive.forceApply", str(bool(number // 2 % 2)).lower())
        try:
            frame = spark.sql(sql)
            text, given = plan(frame), frame.columns
        except Exception as error:  # Spark refuses some names
            sys.stderr.write(f"{kind} {odd!r} {str(error).splitlines()[0]}\n")
            continue
        real = {"{n}": name, "{m}": second}
        made = [[_real(source, real) for source in column.split()] for column in columns]
        decided = None if wide == "?" else [_real(f"I{source}", real) for source in wide.split()]
        query = {"kind": kind, "odd": odd, "sql": sql, "plan": text, "names": given, "columns": made, "wide": decided}
        lines.append(json.dumps(query))
    target.write_bytes(zstandard.ZstdCompressor(19).compress("\n".join(lines).encode()))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _real(source: str, real: dict[str, str]) -> list[str]:
    """Return how, the table, and the column: ``Dt.{n}`` is DIRECT from the odd column of ``t``."""
    if source == "?":
        return ["?", "", ""]
    how, table, column = source[0], source[1], source[3:]
    return [how, table, real.get(column, column)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
