"""Names of columns as spreadsheets and notebooks have them, texts that look like parts of a plan, and their SQL.

In the model a column has the name that SQL takes: an odd one stands in back quotes. ``bare`` is the name itself.
"""

from __future__ import annotations

import re

NAMES = (
    "Amount, EUR", "cost AS planned", "No #12, old", "Rate (1) [%]", "Net\nprice", "q`t", 'a"b', "it's", "#7", "THEN (",
    "CASE WHEN", "total ", "Grün & Weiß", "count(1)", "select", "x#12L", "a.b", "h[0]", "l{m}", "(1) Scan", "AS y",
    "null", "sum(v)", "END) AS z#9", "日付", " leading",
)  # fmt: skip
LITERALS = (
    "(", "]", "{0}", ", x#12", " AS y#3", "line\nend", "\n\n\n===== Subqueries =====\n", "`", "it's", "THEN (",
    " ELSE x END) AS z#9", "(1) Scan parquet \nOutput [1]: [zzz#1]\n", "\\(", '"', "%(_",
)  # fmt: skip

_ORDINARY = re.compile(r"[A-Za-z]\w*", re.ASCII)
_PART = re.compile(r"`(?:[^`]|``)*`|[^`.]+")


def quoted(name: str) -> str:
    """The name as SQL takes it."""
    is_ordinary = _ORDINARY.fullmatch(name) and name not in NAMES
    return name if is_ordinary else "`" + name.replace("`", "``") + "`"


def bare(name: str) -> str:
    """The name without its back quotes."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def parts(name: str) -> list[str]:
    """The column and, of a field of a struct, the field."""
    return _PART.findall(name)


def is_field(name: str) -> bool:
    """Whether it is a field of a struct."""
    return len(parts(name)) > 1


def literal(text: str) -> str:
    """The text as SQL takes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def query_text(sql: str) -> str:
    """A query as Python text."""
    is_readable = '"' not in sql and not sql.endswith("\\")
    return f'r"""{sql}"""' if is_readable else repr(sql)
