"""Masks secrets in text, Spark properties, commands and nested values; harmless text stays byte for byte.

A secret is known by its key (``secret_keys``), by its shape (``secret_shapes``), or to its owner (``own_secrets``).
Masking is idempotent, and its time grows linearly with the text, up to a bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

from spark_lineage.emit.own_secrets import mask_own
from spark_lineage.emit.secret_keys import (
    KEY_WORDS,
    MASK,
    has_secret_value,
    is_class_name,
    is_harmless_value,
    is_secret_key,
)
from spark_lineage.emit.secret_shapes import mask_name_shapes, mask_shapes

__all__ = [
    "MASK",
    "redact",
    "redact_column",
    "redact_command",
    "redact_dataset",
    "redact_key",
    "redact_name",
    "redact_value",
    "unused_key",
]

# Masking may bring a second secret to light (a login within a login). Two rounds do for all text that we have seen.
_ROUNDS = 8

# A line of that many characters takes half a second at worst, and nobody reads on. What is kept is so much shorter that
# a text which was cut is not cut again, however long its masks are.
_LONGEST = 1_000_000
_KEPT = 250_000
# Where it may be cut: no secret with a shape of its own has one of these in it.
_CUT_AT = " \t\n\"',&;"
_CUT_WITHIN = 10_000

_KEY = re.compile(
    r"(?<![\w.$\-])(?:(?P<flag>--[A-Za-z][\w.\-]*+)[ \t]{1,8}(?=[^\s\-=:])"
    # A line of spark-defaults.conf, and a key and a value that are arguments of one call.
    r"|(?P<property>spark\.[\w.\-]++)[ \t]{1,8}(?=[^\s=:]++[ \t]*+$)"
    r"|(?P<argument>[\w.\-]++)[\"'][ \t]{0,8},[ \t]{0,8}(?=[\"'])"
    r"|(?P<key>[\w.$\-]++)(?P<separator>\\{0,8}[\"'`]?[ \t]{0,8}(?:=>|->|(?<=-)>|:=|==?|:(?!:|//)|%3[dD])[ \t]{0,8}))",
    re.MULTILINE,
)
_SETTER = re.compile(r"(?:option|config|conf|set|header|property|put)\([\"']\Z", re.IGNORECASE)
# Not possessive: nothing follows that it could give anything back to, and CPython before 3.11.5 takes too much then.
_PLAIN = (
    r"(?:[^\s\"'`&;,\\]"
    # These end a value only where something follows that is no part of it: the next parameter, a space, a closing mark.
    r"|[&;,](?![\s\"'`]|$|\\?[\"']?[\w.\-]{1,64}+\\?[\"']?[=:])"
    r"|\\(?![\"'`nrt])|[\"'`](?![\s,;:)\]}>]|$))+"
)
_VALUE = re.compile(
    r"(?P<open>[bBuUrR]?\")(?P<double>(?:[^\"\\\n]|\\.|\"\")*+)"
    r"|(?P<open1>[bBuUrR]?')(?P<single>(?:[^'\\\n]|\\.|'')*+)"
    r"|(?P<open2>(?P<escaped_quote>\\{1,8}[\"']))(?P<escaped>(?:(?!(?<!\\)(?P=escaped_quote))[^\n])*+)"
    r"|(?P<open3>\{)(?P<braces>[^}\n]*+)|(?P<open4>\[)(?P<brackets>[^\]\n]*+)|(?P<open5>\()(?P<parentheses>[^)\n]*+)"
    rf"|(?P<scheme>(?:Bearer|Basic|Digest|Negotiate|Token|ApiKey)[ \t]{{1,8}}|)(?P<plain>{_PLAIN})",
    re.IGNORECASE | re.MULTILINE,
)
_JAAS = re.compile(r"(?P<plain>[^\"'\\\s][^\n]*?)(?=;(?:[\s\"'\\]|$)|$)", re.MULTILINE)
_CLOSING = ")]}>,;:."
# What keys of specifications look like: a common word that is registered as a secret must not take them apart.
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PARAMETER = re.compile(r"(?P<key>(?<=[?&;])[\w.\-]++=)(?P<value>[^&;#\s]++)")
_ASSIGNMENT = re.compile(r"(?P<key>-{0,2}[\w.\-]+)=(?P<value>.*)", re.DOTALL)


def redact(text: str) -> str:
    """The text with its secrets replaced by ``***``; doing it again changes nothing.

    Of more than a million characters the first 250,000 stay, with how many were left out.
    """
    return _settled(_bounded(text), _mask)


def redact_name(name: str) -> str:
    """The name of a job: as text, but a registered secret that could be a name as well stays."""
    return _settled(_bounded(name), lambda each: _mask(each, is_name=True))


def redact_dataset(name: str) -> str:
    """A dataset's namespace or name without URL logins, secret parameters and unmistakable tokens.

    All else is identity and stays, a registered secret too if it could be a name.
    """
    return _settled(name, _mask_dataset)


def redact_column(name: str) -> str:
    """The name of a column, which may be ``password``: only what is a secret by its shape, or by its owner, goes."""
    return _settled(name, lambda each: mask_own(mask_shapes(each), is_name=True))


def redact_key(key: str) -> str:
    """The key of a map, which may come from anywhere; one that is a word is masked by its shape alone."""
    return mask_shapes(key) if _WORD.fullmatch(key) else redact_column(key)


def unused_key(key: str, taken: Container[Any]) -> str:
    """The key, with asterisks behind it where another that differed in its secret is there already."""
    while key in taken:
        key += "*"
    return key


def redact_command(argv: Sequence[str]) -> list[str]:
    """A command as ``spark-submit`` takes it, an argument in, an argument out."""
    masked: list[str] = []
    flag = ""
    for argument in argv:
        masked.append(mask_own(_redact_argument(flag, argument)))
        flag = argument if argument.startswith("-") and "=" not in argument else ""
    return masked


def redact_value(value: Any) -> Any:
    """Nested dicts, lists, tuples and texts, masked by key and by shape; a tuple becomes a list.

    Under a secret key all but ``None`` and booleans becomes ``***``; other numbers and objects stay as they are. A list
    of texts alone may be a command.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        is_pair = has_secret_value(value)
        masked: dict[Any, Any] = {}
        for key, entry in value.items():
            new_key = unused_key(redact_key(key), masked) if isinstance(key, str) else key
            masked[new_key] = _redact_entry("secret" if is_pair and key == "value" else key, entry)
        return masked
    if isinstance(value, (list, tuple)):
        if all(isinstance(entry, str) for entry in value):
            return redact_command(value)
        return [redact_value(entry) for entry in value]
    return value


def _settled(text: str, mask: Callable[[str], str]) -> str:
    for _ in range(_ROUNDS):
        masked = mask(text)
        if masked == text:
            break
        text = masked
    return text


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    end = max(text.rfind(mark, _KEPT - _CUT_WITHIN, _KEPT) for mark in _CUT_AT)
    end = _KEPT if end < 0 else end
    return f"{text[:end]} ... ({len(text) - end} more characters)"


def _mask(text: str, *, is_name: bool = False) -> str:
    # The owner's secrets come first, for a mask within one would hide the rest of it; but keys must be read before.
    text = mask_own(text, is_name=is_name, is_first=True)
    return mask_own(_mask_keyed(mask_shapes(text)), is_name=is_name)


def _mask_dataset(name: str) -> str:
    name = mask_own(name, is_name=True, is_first=True)
    return mask_own(_PARAMETER.sub(_mask_parameter, mask_name_shapes(name)), is_name=True)


def _redact_entry(key: Any, value: Any) -> Any:
    if isinstance(key, str) and isinstance(value, str):
        return _redact_under(key, value)
    if isinstance(key, str) and is_secret_key(key):
        return value if value is None or isinstance(value, bool) else MASK
    return redact_value(value)


def _redact_under(key: str, value: str) -> str:
    if is_secret_key(key):
        return value if is_harmless_value(value) else MASK
    return redact(value)


def _redact_argument(flag: str, argument: str) -> str:
    if flag == "--keytab" or (flag.startswith("--") and is_secret_key(flag) and not argument.startswith("-")):
        return MASK
    assignment = _ASSIGNMENT.fullmatch(argument)
    if assignment is None:
        return redact(argument)
    key, value = assignment["key"], assignment["value"]
    if key == "--keytab":
        return f"{key}={MASK}"
    if key == "--conf":
        return f"{key}={_redact_argument('', value)}"
    return f"{key}={_redact_under(key, value)}"


def _mask_parameter(match: re.Match[str]) -> str:
    if is_secret_key(match["key"][:-1]) and not is_harmless_value(match["value"]):
        return f"{match['key']}{MASK}"
    return match[0]


def _mask_keyed(text: str) -> str:
    if KEY_WORDS.search(text) is None:
        return text
    parts: list[str] = []
    end = 0
    for start, stop in _secret_spans(text):
        parts += (text[end:start], MASK)
        end = stop
    return "".join((*parts, text[end:])) if parts else text


def _secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the values under secret keys are, in order and apart from each other."""
    position = 0
    while (match := _KEY.search(text, position)) is not None:
        position = match.end()
        key = match["flag"] or match["property"] or match["argument"] or match["key"]
        if not is_secret_key(key) or (":" in (match["separator"] or "") and is_class_name(key)):
            continue
        # A list of columns looks the same: only a dotted key, or what sets an option, makes the next one its value.
        if (
            match["argument"]
            and "." not in key
            and _SETTER.search(text, max(0, match.start() - 16), match.start()) is None
        ):
            continue
        span = _value_span(text, position, key)
        if span is not None:
            yield span
            position = span[1]


def _value_span(text: str, position: int, key: str) -> tuple[int, int] | None:
    # A JAAS configuration is one value with spaces in it.
    is_jaas = key.lower().endswith("jaas.config")
    match = (_JAAS.match(text, position) if is_jaas else None) or _VALUE.match(text, position)
    if match is None or match.lastgroup is None:
        return None
    start, end = match.span(match.lastgroup)
    if match.lastgroup == "plain" and not is_harmless_value(text[start:end]):
        end = start + len(text[start:end].rstrip(_CLOSING))
    return None if is_harmless_value(text[start:end]) else (start, end)
