"""Which keys name a secret, and which values under such a key are none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

MASK = "***"

# A key is judged by its end: nothing that a person configures is longer, and it bounds the work on hostile text.
LONGEST_KEY = 256

# The two halves of a variable, a tag or a parameter: what it is called, and what it is.
NAME_OF_PAIR = frozenset({"name", "key", "Name", "Key", "NAME", "KEY"})
VALUE_OF_PAIR = frozenset({"value", "Value", "VALUE", "val"})

_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_KEY_OF = (
    r"(?:api|access|private|account|encryption|signing|shared|storage|sas|fernet|master|subscription|auth|functions"
    r"|jwt|hmac|ssh)[._-]?key"
)
# What every key of a kind has in it, and by what the kind is known: the one list from which both expressions are made.
# The latter is read on the key in lower case with its camel humps parted by "_", so that "(?![a-z])" means the end of
# a word.
_KINDS = {
    # "bypass", "compass", "surpass", "lowpass", "trespass", "overpass" and others are no passwords.
    "pass": r"pass[._-]?(?:w(?:or)?d|phrase)|(?<!by)(?<!com|sur|low)(?<!tres|over|high|band)pass\d*$",
    "pw": r"pwd(?![a-z])|(?:^|[._-]|db|user|root|my)pw\d*$",
    "secret": r"secret(?!ar)",
    "token": r"token(?![a-z])",
    _KEY_OF: _KEY_OF,
    "keytab": r"\.keytab$",
    "auth": r"(?:^|\.)auth(?=\.|$)|authorization",
    "cred": r"credential|creds(?![a-z])|(?<![a-z])cred(?![a-z])",
    "jaas": r"sasl[._-]jaas[._-]config",
    "sig": r"signature|(?<![a-z])sig(?![a-z])",
    "cookie": r"(?<![a-z])cookie(?![a-z])",
    "jsessionid": r"jsessionid$",
}
# Every key that names a secret has one of these in it, in whatever case; without look-around.
KEY_WORDS = "|".join(_KINDS)
_SECRET = re.compile("|".join(_KINDS.values()))

# The last word of a key that speaks about a secret without holding one: where it is, how long it lives, who gives it.
_ABOUT = re.compile(
    r"(?:^|[._$-])(?:providers?|path|file|keyfile|dir|class|enabled?|type|count|limit|length|size|ttl|timeout|ms|seconds"
    r"|interval|expiry|expires|expiration|ratio|regex|pattern|manager|exception|error|cache|factory|algorithm|format"
    r"|name|url|uri|endpoint|host|port|binding|kind|renewer|version|mode|master_key_id|java|scala|py|kt)$"
)

# ``java.package.ClassName`` before a colon is an exception or a logger, whatever its package is called.
_CLASS_NAME = re.compile(r"(?:[a-z]\w*\.){2,}(?=[A-Z]\w*[a-z])[\w$.]*")

_NO_SECRETS = frozenset({"true", "false", "yes", "no", "null", "none"})
_TYPES = re.compile(
    r"str(?:ing|uct)?|bytes|binary|bool(?:ean)?|(?:big|small|tiny)?int(?:eger)?|long|short|float|double|decimal|date"
    r"|timestamp|array|map"
)
_MASKED = re.compile(r"\*{3,}(?:\(redacted\))?")

# A method that reads a secret takes its name, and an error about one a message.
_NO_SETTER = re.compile(
    r"(?:get|has|is|find|load|read|fetch|lookup|check|validate|verify|parse|decode|test|remove|delete|drop"
    r"|invalid|expired|missing|unknown)(?![a-z])"
)
# What tests, parsers and Hadoop print under a word that is no more than that, where a secret would look otherwise: a
# count, the name of a grammar's token or a set of such, a way to log in, and how a function is called.
_NO_SECRET_HERE = re.compile(
    r"(?:(?i:pass)[ \t]*+[:=][ \t]*+\d{1,4}(?:/\d{1,4})?"
    r"|(?i:token)[ \t]*+[:=][ \t]*+(?:TOK_[A-Z_]{1,40}|<EOF>|[\"'][^\w\s\"'*]{1,3}[\"'])"
    r"|(?i:(?<=expecting )|(?<=expected ))token:[ \t]*+(?:\{[^}\d\n]{0,400}\}|[A-Z][A-Z_]{0,23})"
    r"|auth:(?:SIMPLE|KERBEROS|KERBEROS_SSL|TOKEN|CERTIFICATE|PROXY)"
    r"|(?i:signature)[ \t]*+[:=][ \t]*+(?:[\w.$<>]{1,99}\(|\([^)\n]{0,400}\)[ \t]*->)"
    r")(?:(?<=[(>])|(?=[.,;:)\]}]*+(?:\s|$)|,\w{1,32}=))"
)
# What a column could be called: words, joined by "_".
_COLUMN = re.compile(r"[^\W\d_]+(?:_\w+)*")
PLAIN_KEY = re.compile(r"[\w.$\-]+")
# No column is called like a header or a property.
NO_COLUMN = re.compile(r"[.\-]")


def is_secret_key(key: str) -> bool:
    """Whether the value under this key is a secret (``spark.db.password``, ``apiKey``, ``X-Amz-Signature``)."""
    return _is_secret_key(key[-LONGEST_KEY:])


@lru_cache(maxsize=4096)
def _is_secret_key(key: str) -> bool:
    words = _CAMEL_BOUNDARY.sub("_", key.removeprefix("-D")).lower()
    return _SECRET.search(words) is not None and _ABOUT.search(words) is None


def has_secret_value(entry: Mapping[Any, Any]) -> bool:
    """Whether the ``value`` of an entry is a secret by its ``name`` or ``key``, as variables and tags have them."""
    is_pair = not VALUE_OF_PAIR.isdisjoint(entry)
    names = (entry.get(name) for name in NAME_OF_PAIR)
    return is_pair and any(isinstance(name, str) and is_secret_key(name) for name in names)


def is_setter(name: str) -> bool:
    """Whether a function of this name takes a secret (``setPassword``, ``b.with_secret_key``, ``PASSWORD`` of SQL)."""
    last = name[-LONGEST_KEY:].rpartition(".")[2]
    return is_secret_key(last) and _NO_SETTER.match(_CAMEL_BOUNDARY.sub("_", last).lower()) is None


def is_harmless_here(text: str, position: int) -> bool:
    """Whether the key at this place in a text is a mere word, such as the ``PASS=12`` of a test."""
    return _NO_SECRET_HERE.match(text, position) is not None


def is_secret_pair(entries: Sequence[str]) -> bool:
    """Whether a list of texts is a key and its secret, which JSON writes as it writes two names of columns.

    No column is called ``X-Api-Key`` or ``db.password``; beside others the second is one where it is words alone.
    """
    if len(entries) != 2 or not PLAIN_KEY.fullmatch(entries[0]) or not is_secret_key(entries[0]):  # noqa: PLR2004 - a pair
        return False
    return NO_COLUMN.search(entries[0]) is not None or _COLUMN.fullmatch(entries[1]) is None


def is_class_name(key: str) -> bool:
    """Whether the key is a qualified Java class name, as stack traces have before a colon."""
    return "$" in key or _CLASS_NAME.fullmatch(key[-LONGEST_KEY:]) is not None


def is_harmless_value(value: str) -> bool:
    """Whether a value under a secret key gives nothing away: empty, yes or no, a column type, or masked already."""
    stripped = value.strip().lower()
    return (
        not stripped
        or stripped in _NO_SECRETS
        or _TYPES.fullmatch(stripped) is not None
        or _MASKED.fullmatch(stripped) is not None
    )
