"""Masks secrets in text, Spark properties, commands and nested values; harmless text stays byte for byte.

A secret is known by its key (``secret_keys``), by its shape (``secret_shapes``), or to its owner
(``registered_secrets``). Masking is idempotent, and its time grows linearly with the text, up to a
bound.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from spark_lineage.secrets.prefilter import Prefilter
from spark_lineage.secrets.registered_secrets import mask_own
from spark_lineage.secrets.secret_keys import (
    KEY_WORDS,
    MASK,
    NO_COLUMN,
    VALUE_OF_PAIR,
    has_secret_value,
    is_class_name,
    is_harmless_here,
    is_harmless_value,
    is_secret_key,
    is_secret_pair,
    is_setter,
)
from spark_lineage.secrets.secret_shapes import mask_name_shapes, mask_shapes, may_have_shape

__all__ = [
    "MASK",
    "redact",
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

# Where a key begins, also behind an escaped line end.
_BEGIN = r"(?:(?<![\w.$\-])|(?<=\\[nrt]))"
_KEY = re.compile(
    rf"{_BEGIN}"
    r"(?:(?P<flag>--?[A-Za-z][\w.\-]*+)[ \t]++(?=[^\s\-=:])"
    # A line of spark-defaults.conf, a key and a value that are arguments of one call, and a call with one literal.
    r"|(?P<property>spark\.[\w.\-]++)[ \t]++(?=[^\s=:]\S*+[ \t]*+(?:$|(?<=[ \t])\#))"
    r"|(?P<argument>[\w.\-]++)\\{0,8}[\"'][ \t]*+,[ \t]*+(?=\\{0,8}[\"'])"
    r"|(?P<call>[\w.$\-]++)\(\s*+(?=[bBuUrR]?(?:\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
    r"|\\{1,8}[\"'][^\"'\\\n]*+\\{1,8}[\"'])\s*+\))"
    # A pair as Scala prints it.
    r"|(?<=(?<!\w)\()(?P<tuple>[\w\-]++\.[\w.\-]++),(?=[^\s\"'])"
    # What parts them may be written for a URL, for HTML, or as Java's Gson does.
    r"|(?P<key>[\w.$\-]++)(?P<separator>(?:%22|&quot;|\\{0,8}[\"'`]?\]?)[ \t]*+"
    r"(?:=>|->|(?<=-)>|:=|==?|:(?!:|//)|%3[aAdD]|\\{1,8}u003[dD]|&#61;)[ \t]*+(?:%22|&quot;)?))",
    re.MULTILINE,
)
# Also a pair alone, as Python prints those of a list.
_SETTER = re.compile(
    r"(?:(?:option|config|conf|set|header|property|put|env|default)|(?<![\w \t]))\(\\{0,8}[\"']\Z", re.IGNORECASE
)
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
_COOKIES = re.compile(r"(?P<plain>[^\"'\\\s][^\"'\\\n]*+)")
# ``Digest username="u", response="…"``, whatever the scheme and its parameters are.
_PARAMETER_OF_LOGIN = r"[\w\-]++=(?:\\*+\"[^\"\\\n]*+\\*+\"|[^\s,\"'\\]++)"
_LOGIN_PARAMETERS = re.compile(
    rf"(?P<plain>[A-Za-z][\w\-]*+[ \t]++(?=[\w\-]++=(?:\\*+\"|[^\s,\"'\\]++[ \t]*+,))"
    rf"{_PARAMETER_OF_LOGIN}(?:[ \t]*+,[ \t]*+{_PARAMETER_OF_LOGIN})*+)"
)
_LONG_VALUES = {"jaas.config": _JAAS, "cookie": _COOKIES, "authorization": _LOGIN_PARAMETERS}
# ``{"name": "DB_PASSWORD", "value": "…"}``, and the same as YAML, as attributes, and as JSON within JSON.
_HALF_OF_PAIR = re.compile(
    rf"{_BEGIN}"
    r"(?:(?P<is_name>name|key)|value)\\{0,8}[\"']?[ \t]*+(?:=>|[:=])[ \t]*+"
    r"(?(is_name)\\{0,8}[\"']?(?P<name>[\w.$\-]{0,256}))",
    re.IGNORECASE,
)
_END_OF_PAIR = re.compile(r"[{}<>]|\n\n")
# What stands between its halves and ends nothing: texts, and what is in braces of its own.
_IN_PAIR = re.compile(r"\"[^\"\\\n]*+\\*+\"|'[^'\\\n]*+\\*+'|\{[^{}]*+\}")
_CLOSING = ")]}>,;:."
_key_words = Prefilter(f"(?i){KEY_WORDS}")
# What a text must have: a key of a secret with what parts it from its value, or such a key as the name of a pair. Each
# finds more than ``_KEY`` and ``_HALF_OF_PAIR``, never less.
_IN_KEY = r"[^\s\\\"'`\]=:>%,]*"
_may_have_key = Prefilter(
    rf"(?i)(?:{KEY_WORDS}){_IN_KEY}\\*(?:%22|&quot;|[\"'`]?\]?[ \t]*(?:[=:>]|->|%3[ad]|\\*u003d|&#61;)|[\"'][ \t]*,"
    r"|\(\s*\\*[bur]?[\"'])"
    rf"|\({_IN_KEY}(?:{KEY_WORDS}){_IN_KEY},"
    rf"|(?:-|spark\.){_IN_KEY}(?:{KEY_WORDS}){_IN_KEY}[ \t]+[^\s=:]"
)
_may_have_pair = Prefilter(rf"(?i)(?:name|key)\\*[\"']?[ \t]*(?:=>|[:=])[ \t]*\\*[\"']?{_IN_KEY}(?:{KEY_WORDS})")
_may_have_secret = Prefilter(
    "|".join(f"(?:{each.expression})" for each in (_may_have_key, _may_have_pair, may_have_shape))
)
# Of a terminal, and as JSON and Python write them.
_COLOURS = re.compile(r"(?:\x1b|\\{1,8}(?:u00|x)1b)\[[0-9;]*+[A-Za-z]", re.IGNORECASE)
# What keys of specifications look like: a common word that is registered as a secret must not take them apart.
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PARAMETER = re.compile(r"(?P<key>(?<=[?&;])[\w.\-]++=)(?P<value>[^&;#\s]++)")
_FLAG = re.compile(r"-[\w.\-]*")
# Flags of curl and others that take ``user:password``.
_LOGIN_FLAGS = frozenset({"--user", "--proxy-user"})
_LOGIN = re.compile(r"(?!\d+:\d+\Z)(?P<keep>[^\s:/]+:)(?!//).+", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?P<key>-{0,2}[\w.\-]+)=(?P<value>.*)", re.DOTALL)


def redact(text: str) -> str:
    """The text with its secrets replaced by ``***``; doing it again changes nothing.

    Of more than a million characters the first 250,000 stay, with how many were left out.
    """
    return _settled(_bounded(text), _mask)


def redact_name(name: str) -> str:
    """The name of a job: as text, but a registered secret that could be a name as well stays."""
    return _settled(_bounded(name), _mask_name)


def redact_dataset(name: str) -> str:
    """The namespace or name of a dataset, or of a column, without URL logins, secret parameters and plain tokens.

    All else is identity and stays (``password``, ``Bearer shares``), a registered secret too if it could be a name.
    """
    return _settled(name, _mask_dataset)


def redact_key(key: str) -> str:
    """The key of a map, which may come from anywhere; one that is a word is masked by its shape alone."""
    return mask_shapes(key) if _WORD.fullmatch(key) else _settled(key, _mask_key)


def unused_key(key: str, taken: Container[Any]) -> str:
    """The key, with asterisks behind it where another that differed in its secret is there already."""
    while key in taken:
        key += "*"
    return key


def redact_command(argv: Sequence[str]) -> list[str]:
    """A command as ``spark-submit`` takes it, an argument in, an argument out."""
    if is_secret_pair(argv):
        return [redact(argv[0]), _redact_under(argv[0], argv[1])]
    masked: list[str] = []
    flag = ""
    for argument in argv:
        # Its short flag means other things to other programs.
        flag = "--user" if flag in ("-u", "-U") and argv[0].endswith("curl") else flag
        masked.append(mask_own(_settled(argument, partial(_redact_argument, flag))))
        flag = argument if _FLAG.fullmatch(argument) else ""
    return masked


def redact_value(value: Any) -> Any:
    """Nested dicts, lists, tuples and texts, masked by key and by shape; a tuple becomes a list.

    Under a secret key all but ``None`` and booleans becomes ``***``; other numbers and objects stay as they are. A list
    of texts alone may be a command, or a key and its secret.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        is_pair = has_secret_value(value)
        masked: dict[Any, Any] = {}
        for key, entry in value.items():
            new_key = unused_key(redact_key(key), masked) if isinstance(key, str) else key
            masked[new_key] = _redact_entry("secret" if is_pair and key in VALUE_OF_PAIR else key, entry)
        return masked
    if isinstance(value, (list, tuple)):
        if all(isinstance(entry, str) for entry in value):
            return redact_command(value)
        return [redact_value(entry) for entry in value]
    return value


def _settled(text: str, mask: Callable[[str], str]) -> str:
    for _ in range(_ROUNDS):
        masked = mask(text)
        if masked == text and ("\x1b" in text or "\\" in text):
            # Colours may part a key from its value: a text that has a secret without them loses them.
            plain = _COLOURS.sub("", text)
            without = mask(plain) if plain != text else plain
            masked = text if without == plain else without
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
    if _may_have_secret(text):
        # The owner's secrets come first, for a mask within one would hide the rest of it; but keys must be read before.
        text = _mask_keyed(mask_shapes(mask_own(text, is_name=is_name, is_first=True)))
    return mask_own(text, is_name=is_name)


def _mask_name(name: str) -> str:
    return _mask(name, is_name=True)


def _mask_dataset(name: str) -> str:
    name = mask_own(name, is_name=True, is_first=True)
    return mask_own(_PARAMETER.sub(_mask_parameter, mask_name_shapes(name)), is_name=True)


def _mask_key(key: str) -> str:
    return mask_own(mask_shapes(key), is_name=True)


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
    if flag == "--keytab" or (flag.startswith("-") and is_secret_key(flag) and not argument.startswith("-")):
        return MASK
    if flag in _LOGIN_FLAGS and _LOGIN.fullmatch(argument):
        return _LOGIN.sub(rf"\g<keep>{MASK}", argument)
    assignment = _ASSIGNMENT.fullmatch(argument)
    if assignment is None:
        return redact(argument)
    key, value = assignment["key"], assignment["value"]
    if key == "--keytab":
        return f"{key}={MASK}"
    if key == "--conf" or key in _LOGIN_FLAGS:
        return f"{key}={_redact_argument(key, value)}"
    return f"{key}={_redact_under(key, value)}"


def _mask_parameter(match: re.Match[str]) -> str:
    if is_secret_key(match["key"][:-1]) and not is_harmless_value(match["value"]):
        return f"{match['key']}{MASK}"
    return match[0]


def _mask_keyed(text: str) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in sorted((*_secret_spans(text), *_pair_spans(text))):
        if start >= end:
            parts += (text[end:start], MASK)
        end = max(end, stop)
    return "".join((*parts, text[end:])) if parts else text


def _secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the values under secret keys are."""
    end = 0
    for start in _key_starts(text) if _may_have_key(text) else ():
        match = _KEY.match(text, start) if start >= end else None
        if match is None:
            continue
        key = match["flag"] or match["property"] or match["argument"] or match["tuple"] or match["call"] or match["key"]
        if not is_secret_key(key) or (":" in (match["separator"] or "") and is_class_name(key)):
            continue
        if (match["call"] and not is_setter(key)) or is_harmless_here(text, start):
            continue
        # A list of columns looks the same: only a key that is no name of one, or what sets an option, makes the next
        # one its value.
        is_name = match["argument"] and not NO_COLUMN.search(key)
        if is_name and _SETTER.search(text, max(0, start - 24), start) is None:
            continue
        span = _value_span(text, match.end(), key)
        if span is not None:
            yield span
            end = span[1]


def _key_starts(text: str) -> Iterator[int]:
    """Where the keys begin that have the word of a secret in them."""
    end = -1
    for word, stop in _key_words.spans(text):
        start = word
        while start not in (0, end) and (text[start - 1].isalnum() or text[start - 1] in "_.$-"):
            start -= 1
        if start != end:
            yield start
            if text[start - 1 : start] == "\\":
                # Its first letter may be that of an escaped line end.
                yield start + 1
        end = stop


def _pair_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the values are that stand beside the name of a secret: behind it, else before it."""
    halves = list(_HALF_OF_PAIR.finditer(text)) if _may_have_pair(text) else []
    end = 0
    for number, half in enumerate(halves):
        if half.start() < end or not is_secret_key(half["name"] or ""):
            continue
        before, behind = halves[max(number - 1, 0)], halves[min(number + 1, len(halves) - 1)]
        if not behind["is_name"] and _is_one_pair(text[half.end() : behind.start()]):
            span = _value_span(text, behind.end(), "")
        else:
            span = None if before["is_name"] else _value_span(text, before.end(), "", half.start())
            if span is not None and not _is_one_pair(text[span[1] : half.start()]):
                span = None
        if span is not None:
            yield span
            end = span[1]


def _is_one_pair(between: str) -> bool:
    """Whether nothing ends between two halves; the text begins behind the first, before its closing quote."""
    return _END_OF_PAIR.search(_IN_PAIR.sub("", between.lstrip("\\").removeprefix('"').removeprefix("'"))) is None


def _value_span(text: str, position: int, key: str, stop: int = sys.maxsize) -> tuple[int, int] | None:
    # A JAAS configuration is one value with spaces in it, and so are the cookies of a header.
    long = next((each for end, each in _LONG_VALUES.items() if key.lower().endswith(end)), None)
    match = (long.match(text, position) if long else None) or _VALUE.match(text, position, stop)
    if match is None or match.lastgroup is None:
        return None
    start, end = match.span(match.lastgroup)
    if match.lastgroup == "plain" and not is_harmless_value(text[start:end]):
        end = start + len(text[start:end].rstrip(_CLOSING))
    return None if is_harmless_value(text[start:end]) else (start, end)
