"""Names that every backend can hold, made here alone, and turned back to what they were.

What cannot be held is written as ``+HEX+``: ``kafka://a:9092,b:9092`` becomes ``kafka://a:9092+2C+b:9092``. The bounds
are Marquez's, the narrowest: a namespace that it accepts (``NamespaceName.java``) and does not change
(``formatNamespaceName`` in ``OpenLineageDao.java``), and a name that is not blank (``DatasetName.java``) and that
PostgreSQL and JSON can hold.
"""

from __future__ import annotations

import re
from functools import lru_cache

from spark_lineage.naming.identity import DatasetName

_EMPTY = "+-+"
_TOKEN = re.compile(r"\+([0-9A-F]{2,6})\+")


def _unsafe(characters: str) -> re.Pattern[str]:
    """Match what has to be a token: these characters, a text of blanks, and a ``+`` that would look like a token's."""
    return re.compile(rf"{characters}|\A\s(?=\s*\Z)|\+(?=[0-9A-F]{{2,6}}(?:\+|{characters}))|\A\+(?=-\+\Z)")


_UNSAFE_NAMESPACE = _unsafe(r"[^a-zA-Z:/0-9_.@+-]")
_UNSAFE_NAME = _unsafe(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


# Column lineage names the same few datasets over and over.
@lru_cache(maxsize=8192)
def safe_name(dataset: DatasetName) -> DatasetName:
    """Return a name that every backend can hold; an ordinary one is given back as it is."""
    return DatasetName(_safe(_UNSAFE_NAMESPACE, dataset.namespace), _safe(_UNSAFE_NAME, dataset.name))


def original_name(dataset: DatasetName) -> DatasetName:
    """Return the name that :func:`safe_name` was given."""
    return DatasetName(original_namespace(dataset.namespace), original_namespace(dataset.name))


def original_namespace(namespace: str) -> str:
    """Return the namespace that :func:`safe_name` was given."""
    return "" if namespace == _EMPTY else _TOKEN.sub(lambda token: chr(int(token[1], 16)), namespace)


def _safe(unsafe: re.Pattern[str], text: str) -> str:
    return unsafe.sub(lambda match: f"+{ord(match[0]):02X}+", text) if text else _EMPTY
