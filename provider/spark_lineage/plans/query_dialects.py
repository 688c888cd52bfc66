"""Lists the SQL dialects of the databases that Spark reads queries from, and how each one reads names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal


def listed(text: str) -> frozenset[str]:
    """Return the names in a text."""
    return frozenset(text.split())


_STANDARD = listed("""
    CURRENT_CATALOG CURRENT_DATE CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME
    LOCALTIMESTAMP SESSION_USER SYSTEM_USER USER
""")
_ORACLE = listed("""
    CONNECT_BY_ISCYCLE CONNECT_BY_ISLEAF DBTIMEZONE LEVEL ROWNUM SESSIONTIMEZONE SYSDATE SYSTIMESTAMP UID
""")
_MYSQL = listed("""
    CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIME UTC_TIMESTAMP
""")


@dataclass(frozen=True)
class Dialect:
    """How a kind of database reads SQL.

    ``parser`` is sqlglot's name of it, ``schemes`` are those of the namespaces that the listener gives its tables.
    ``fold`` is what becomes of a name without quotes: upper or lower case, or what is written; then names are alike in
    any case. ``values`` are words that look like columns and are none, ``hidden`` columns that no schema shows.
    """

    parser: str
    schemes: tuple[str, ...]
    fold: Literal["upper", "lower", "as written"]
    values: frozenset[str] = _STANDARD
    hidden: frozenset[str] = frozenset()
    quote: str = '"'
    needs_recursive: bool = True
    """Whether a common table expression may use itself only where ``RECURSIVE`` says so."""
    has_aliases_in_having: bool = False
    has_rows_as_values: bool = False
    """Whether the name of a table may stand for its whole row."""
    variants: tuple[Dialect, ...] = ()
    """How else databases of this kind may be set up to fold names."""

    def name(self, identifier: Any) -> str:
        """Return the name that an identifier (``sqlglot.exp.Identifier``) means in the database."""
        written = str(identifier.this)
        return written if identifier.args.get("quoted") else self.folded(written)

    def folded(self, written: str) -> str:
        """Return what becomes of a name without quotes."""
        return written.upper() if self.fold == "upper" else written.lower() if self.fold == "lower" else written

    def key(self, name: str) -> str:
        """Return what is the same for names that mean the same."""
        return name.casefold() if self.fold == "as written" else name

    def is_value(self, identifier: Any) -> bool:
        """Whether a word that looks like a column is a value of the session, or no column of the schema."""
        return not identifier.args.get("quoted") and str(identifier.this).upper() in self.values | self.hidden


_H2 = Dialect(
    "",
    ("h2", "derby", "db2", "hsqldb"),
    "upper",
    values=_STANDARD | {"ROWNUM", "SYSDATE", "SYSTIMESTAMP"},
    hidden=frozenset({"_ROWID_"}),
    has_aliases_in_having=True,
)
DIALECTS = (
    Dialect(
        "postgres",
        ("postgres", "postgresql"),
        "lower",
        hidden=frozenset({"CMAX", "CMIN", "CTID", "TABLEOID", "XMAX", "XMIN"}),
        has_rows_as_values=True,
    ),
    Dialect("mysql", ("mysql", "mariadb"), "as written", values=_MYSQL, quote="`", has_aliases_in_having=True),
    Dialect(
        "oracle",
        ("oracle",),
        "upper",
        values=_STANDARD | _ORACLE,
        hidden=frozenset({"ORA_ROWSCN", "ROWID"}),
        needs_recursive=False,
    ),
    Dialect("tsql", ("sqlserver", "mssql"), "as written", quote="[", needs_recursive=False),
    replace(_H2, variants=(replace(_H2, fold="lower"), replace(_H2, fold="as written"))),
)
