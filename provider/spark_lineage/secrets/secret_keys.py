"""Secrets that are known by their key or shape: which keys name one, where its value stands, which values are none.

Every pattern of a shape starts at a place that it cannot start at again within its own reach (a look-behind, a literal
or a bounded repeat), which keeps the time linear in the length of the text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

try:
    import re2
except ImportError:
    # Slower, and the same: every text is looked at closely.
    re2 = None

MASK = "***"


class Prefilter:
    """A cheap test of a text before the costly ones: most lines of a driver are plain, and many.

    :param expression: without look-around, which RE2 has not
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._pattern: Any = (re2 or re).compile(expression)

    def __call__(self, text: str) -> bool:
        """Whether the text may match."""
        # As bytes, in which RE2 has no characters to count. Surrogates, which UTF-8 has not, become "?".
        return re2 is None or self._pattern.search(text.encode(errors="replace")) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the text matches."""
        # Bytes where their places are those of the characters, for the same reason.
        readable = text.encode(errors="replace")
        is_ascii = len(readable) == len(text)
        found = self._pattern.finditer(readable if is_ascii and re2 else readable.decode())
        return (match.span() for match in found)


# A key is judged by its end: nothing that a person configures is longer, and it bounds the work on hostile text.
LONGEST_KEY = 256
# The two halves of a variable, a tag or a parameter: what it is called, and what it is.
_NAME_OF_PAIR = ("name", "key", "Name", "Key", "NAME", "KEY")
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
_KEY_KINDS = "|".join(_KINDS)
_SECRET = re.compile("|".join(_KINDS.values()))
# The last word of a key that speaks about a secret without holding one: where it is, how long it lives, who gives it.
_ABOUT = re.compile(
    r"(?:^|[._$-])(?:providers?|path|file|keyfile|dir|class|enabled?|type|count|limit|length|size|ttl|timeout|ms|seconds"
    r"|interval|expiry|expires|expiration|ratio|regex|pattern|manager|exception|error|cache|factory|algorithm|format"
    r"|name|url|uri|endpoint|host|port|binding|kind|renewer|version|mode|master_key_id|java|scala|py|kt)$"
)
# ``java.package.ClassName`` before a colon is an exception or a logger, whatever its package is called.
_CLASS_NAME = re.compile(r"(?:[a-z]\w*\.){2,}(?=[A-Z]\w*[a-z])[\w$.]*|[^$]*+\$.*")
# Nothing, yes or no, a type of a column, or masked already.
_HARMLESS = re.compile(
    r"|true|false|yes|no|null|none"
    r"|str(?:ing|uct)?|bytes|binary|bool(?:ean)?|(?:big|small|tiny)?int(?:eger)?|long|short|float|double|decimal|date"
    r"|timestamp|array|map"
    r"|\*{3,}(?:\(redacted\))?"
)
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
_NO_COLUMN = re.compile(r"[.\-]")
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
    r"|(?P<open2>(?P<escaped_quote>\\{1,8}[\"']))(?P<escaped>(?:(?!(?<!\\)(?P=escaped_quote))[^\n])*)"
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
# What a text must have: a key of a secret with what parts it from its value, or such a key as the name of a pair. Each
# finds more than ``_KEY`` and ``_HALF_OF_PAIR``, never less.
_IN_KEY = r"[^\s\\\"'`\]=:>%,]*"
may_have_key = Prefilter(
    rf"(?i)(?:{_KEY_KINDS}){_IN_KEY}\\*(?:%22|&quot;|[\"'`]?\]?[ \t]*(?:[=:>]|->|%3[ad]|\\*u003d|&#61;)|[\"'][ \t]*,"
    r"|\(\s*\\*[bur]?[\"'])"
    rf"|\({_IN_KEY}(?:{_KEY_KINDS}){_IN_KEY},"
    rf"|(?:-|spark\.){_IN_KEY}(?:{_KEY_KINDS}){_IN_KEY}[ \t]+[^\s=:]"
)
_key_parts = Prefilter(f"(?i){_KEY_KINDS}")
may_have_pair = Prefilter(rf"(?i)(?:name|key)\\*[\"']?[ \t]*(?:=>|[:=])[ \t]*\\*[\"']?{_IN_KEY}(?:{_KEY_KINDS})")


def is_secret_key(key: str) -> bool:
    """Whether the value under this key is a secret (``spark.db.password``, ``apiKey``, ``X-Amz-Signature``)."""
    return _is_secret_key(key[-LONGEST_KEY:])


@lru_cache(maxsize=4096)
def _is_secret_key(key: str) -> bool:
    parts = _CAMEL_BOUNDARY.sub("_", key.removeprefix("-D")).lower()
    return _SECRET.search(parts) is not None and _ABOUT.search(parts) is None


def has_secret_value(entry: Mapping[Any, Any]) -> bool:
    """Whether the ``value`` of an entry is a secret by its ``name`` or ``key``, as variables and tags have them."""
    names = map(entry.get, _NAME_OF_PAIR) if not VALUE_OF_PAIR.isdisjoint(entry) else ()
    return any(isinstance(name, str) and is_secret_key(name) for name in names)


def is_secret_pair(entries: Sequence[str]) -> bool:
    """Whether a list of texts is a key and its secret, which JSON writes as it writes two names of columns.

    No column is called ``X-Api-Key`` or ``db.password``; beside others the second is one where it is words alone.
    """
    if len(entries) != 2 or not PLAIN_KEY.fullmatch(entries[0]) or not is_secret_key(entries[0]):  # noqa: PLR2004 - a pair
        return False
    return _NO_COLUMN.search(entries[0]) is not None or _COLUMN.fullmatch(entries[1]) is None


def is_harmless_value(value: str) -> bool:
    """Whether a value under a secret key gives nothing away: empty, yes or no, a column type, or masked already."""
    return _HARMLESS.fullmatch(value.strip().lower()) is not None


def mask_keyed(text: str) -> str:
    """The text with the values under secret keys masked."""
    return mask_spans(text, (*_secret_spans(text), *_pair_spans(text)))


def mask_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with ``***`` in place of these; those that touch each other become one."""
    parts: list[str] = []
    end = -1
    for start, stop in sorted(spans):
        if start > end:
            parts += (text[max(end, 0) : start], MASK)
        end = max(end, stop)
    return "".join((*parts, text[end:])) if parts else text


def _secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the values under secret keys are."""
    end = 0
    for start in _key_starts(text) if may_have_key(text) else ():
        match = _KEY.match(text, start) if start >= end else None
        if match is None:
            continue
        key = match["flag"] or match["property"] or match["argument"] or match["tuple"] or match["call"] or match["key"]
        if not is_secret_key(key) or (":" in (match["separator"] or "") and _CLASS_NAME.fullmatch(key[-LONGEST_KEY:])):
            continue
        if (match["call"] and not _is_setter(key)) or _NO_SECRET_HERE.match(text, start):
            continue
        # A list of columns looks the same: only a key that is no name of one, or what sets an option, makes the next
        # one its value.
        is_name = match["argument"] and not _NO_COLUMN.search(key)
        if is_name and _SETTER.search(text, max(0, start - 24), start) is None:
            continue
        span = _value_span(text, match.end(), key)
        if span is not None:
            yield span
            end = span[1]


def _key_starts(text: str) -> Iterator[int]:
    """Where the keys begin that have the word of a secret in them: a long line has few, and RE2 finds them at once."""
    end = -1
    for word, stop in _key_parts.spans(text):
        start = word
        while start not in (0, end) and (text[start - 1].isalnum() or text[start - 1] in "_.$-"):
            start -= 1
        if start != end:
            yield start
            if text[start - 1 : start] == "\\":
                # Its first letter may be that of an escaped line end.
                yield start + 1
        end = stop


def _is_setter(name: str) -> bool:
    """Whether a function of this name takes a secret (``setPassword``, ``b.with_secret_key``, ``PASSWORD`` of SQL)."""
    last = name[-LONGEST_KEY:].rpartition(".")[2]
    return is_secret_key(last) and _NO_SETTER.match(_CAMEL_BOUNDARY.sub("_", last).lower()) is None


def _pair_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the values are that stand beside the name of a secret: behind it, else before it."""
    halves = list(_HALF_OF_PAIR.finditer(text)) if may_have_pair(text) else []
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


_USERINFO = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]{0,31}|)://"
    # The second form is the legacy s3a://KEY:SECRET@bucket, whose secret may hold a "/"; a port is no password.
    # Behind "user:" there may be "?" and "#", up to the last "@" before what a query, a path or a list has, and one
    # blank.
    r"(?P<userinfo>[^\s/?#\"'<>:@]*:(?!\d+(?!\w))[^\s/?#\"'<>]*[?#][^\s/\"'<>=&,;]*"
    r"|[^\s/?#\"'<>]*"
    r"|[^\s/?#\"'<>:@]*:(?!\d+(?!\w))(?:[^\s\"'<>:@]+|[^\s/\"'<>:@,;]+ [^\s/\"'<>:@,;]+))@"
)
_ORACLE_LOGIN = re.compile(
    r"(?P<keep>jdbc:oracle:\w{1,16}:)[^\s@\"/]{1,128}/[^\s@\"]{0,128}(?:\"[^\"\s]{1,128}\")?@", re.IGNORECASE
)
_PEM = re.compile(r"(?P<begin>-----BEGIN [A-Z0-9 ]{1,40}-----).*?(?P<end>-----END [A-Z0-9 ]{1,40}-----|\Z)", re.DOTALL)
_SCHEME_TOKEN = re.compile(
    r"\b(?P<scheme>Bearer|Basic)(?P<gap>[ \t]++)(?P<token>[\w.~+/=\-]{6,}+)", re.IGNORECASE | re.ASCII
)
_SEPARATOR = re.compile(r"\(|[\"']?[ \t]*+[:=]")
_AWS_PAIR = re.compile(
    r"(?<![A-Z0-9])A(?:KIA|SIA|ROA|IDA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"(?P<rest>(?P<gap>[\s:/,;|\"']{1,4})[A-Za-z0-9/+=]{40}(?![A-Za-z0-9/+=]))?"
)
# How tokens begin, and how they go on.
_PREFIXES = {
    "eyJ": r"[\w\-]{5,}+\.[\w\-]{2,}+(?:\.[\w\-]*+)?",
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{20,}+"),
    "github_pat_": r"\w{20,}+",
    **dict.fromkeys(("glpat-", "glrt-"), r"[\w\-]{16,}+"),
    "xox": r"[a-z]-[A-Za-z0-9\-]{10,}+",
    "xapp-": r"[A-Za-z0-9\-]{10,}+",
    "dapi": r"[0-9a-f]{32}(?:-\d)?",
    "sk-": r"(?:(?:ant|proj)-[\w\-]{20,}+|[A-Za-z0-9]{20,}+[\w\-]*+)",
    **dict.fromkeys(("sk_", "rk_"), r"(?:live|test)_[A-Za-z0-9]{10,}+"),
    "whsec_": r"[A-Za-z0-9+/=]{16,}+",
    # Words that a namespace called "hvs" could hold have no capitals.
    **dict.fromkeys(("hvs.", "hvb."), r"(?=[a-z0-9_\-]{0,64}[A-Z])[\w\-]{10,}+"),
    **dict.fromkeys(("ya29.", "GOCSPX-"), r"[\w\-]{10,}+"),
    "AIza": r"[\w\-]{35}",
    **dict.fromkeys(("hf_", "npm_"), r"[A-Za-z0-9]{30,}+"),
    "pypi-": r"[\w\-]{30,}+",
    "dop_v1_": r"[0-9a-f]{40,}+",
    "SG.": r"[\w\-]{16,}+\.[\w\-]{16,}+",
    "glsa_": r"\w{20,}+",
    "shpat_": r"[0-9a-f]{32}",
    "NRAK-": r"[A-Z0-9]{20,}+",
    "ATATT": r"[\w\-=]{20,}+",
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{20,}+",
    "dckr_pat_": r"[\w\-]{20,}+",
}
_TOKENS = re.compile(
    r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt])|(?<=%3D)|(?<=%20))(?:"
    + "|".join(re.escape(prefix) + rest for prefix, rest in _PREFIXES.items())
    + ")(?![A-Za-z0-9])",
    re.ASCII,
)
# Of these, what no dataset is named like: JSON web tokens, and GitHub's.
_UNMISTAKABLE = re.compile(
    r"(?<![A-Za-z0-9_\-])"
    r"(?:eyJ[\w\-]{5,}+\.eyJ[\w\-]{2,}+(?:\.[\w\-]*+)?|gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_\w{20,}+)(?![A-Za-z0-9])",
    re.ASCII,
)
_SQL_LOGIN = re.compile(
    r"(?P<keep>\b(?:IDENTIFIED(?:\s{1,8}WITH\s{1,8}[^\s;]{1,64})?\s{1,8}(?:BY|AS)(?:\s{1,8}(?:PASSWORD|VALUES))?\s{1,8}"
    r"|PASSWORD(?:[ \t]{1,8}|[ \t]{1,8}FOR[ \t]{1,8}[^\s;]{1,128}[ \t]{0,8}=[ \t]{0,8})))"
    r"(?P<quote>\\{0,8}[\"'])(?:(?!(?P=quote))[^\n]|(?P=quote){2})+(?P=quote)",
    re.IGNORECASE,
)
# Without quotes it is prose, unless it is written in capitals or belongs to a statement.
_SQL_BARE_LOGIN = re.compile(
    r"(?P<keep>\b(?:IDENTIFIED|(?i:(?:(?:create|alter)\s{1,8}(?:user|role)|connect\s{1,8}to)\s{1,8}[^\s;]{1,128}"
    r"\s{1,8}identified))\s{1,8}(?i:by)\s{1,8})(?!(?i:password|values)\b)[^\s\"'\\;,)]++"
)
# ``curl -u user:password``; two numbers are ids, as ``docker run --user`` takes them.
_FLAG_LOGIN = re.compile(
    r"(?P<keep>(?:(?<![\w\-])--(?:proxy-)?user(?=[\s=,\"'\\])|\bcurl\b(?:(?!\bcurl\b)[^\n])*?[\s\"']-[A-Za-z]{0,8}[uU])"
    r"\\{0,8}[\"']?[ \t,=]*+(?P<quote>\\{0,8}[\"'])?(?!\d++:\d++(?![^\s\"'\\]))[^\s:\"',=/\\]{1,128}:(?!//))"
    r"(?(quote)(?:(?!(?P=quote))[^\n])+|[^\s\"'\\]++)"
)
# How command lines are written, and how JSON and Python write them.
_GAP = r"(?:[\s\"',\\]{1,8}|\\{1,8}[nt])"
_WORD = r"[^\s\"',\\|;&]{1,128}"
_BEFORE = r"(?:(?<![\w.\-:])|(?<=\\[nrt]))"
# Tools whose short flag takes a password; of most others it is a port, a path or a process.
_TOOL_PASSWORD = re.compile(
    rf"(?P<keep>{_BEFORE}(?:"
    rf"(?:sshpass|beeline|cqlsh|(?:docker|podman|nerdctl|helm|oc|az|skopeo|buildah)(?:{_GAP}registry)?{_GAP}login)"
    rf"(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-p(?:{_GAP}|=)?"
    rf"|(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump)(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-p"
    rf"|(?:sqlcmd|bcp)(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-P{_GAP}?"
    rf"|(?:ldapsearch|ldapmodify|ldapadd|ldapdelete|ldapwhoami)(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-w{_GAP}?"
    rf"|redis-cli(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-a{_GAP}"
    rf"))(?![\s\"',\\]){_WORD}"
)
# What is printed into a program that reads its password from there.
_PIPED_PASSWORD = re.compile(
    r"(?P<keep>\b(?:echo|printf)[ \t]{1,8}(?:-\w{1,4}[ \t]{1,8})?)[^\n|;&]{1,256}?"
    r"(?=[ \t]{0,8}\|[ \t]{0,8}"
    r"(?:(?:sudo[ \t]{1,8})?kinit\b|sudo[ \t]{1,8}-S\b|[^\n|;&]{1,200}--(?:password-)?stdin\b))"
    r"|(?P<here>\bkinit\b[^\n|;&<]{0,128}<<<[ \t]{0,8})[^\n|;&]{1,256}"
)
_NETRC = re.compile(
    r"(?P<keep>\b(?:machine(?:\s|\\n){1,8}[^\s\\]{1,253}|default)(?:\s|\\n){1,8}login(?:\s|\\n){1,8}[^\s\\]{1,128}"
    r"(?:\s|\\n){1,8}password(?:\s|\\n){1,8})[^\s\\\"']++"
)
# ``host:port:database:user:password`` (PostgreSQL's password file).
_PGPASS = re.compile(
    r"(?P<keep>(?:^|(?<=\\n)|(?<=[\"']))[\w.*\-]{1,253}:(?:\d{4,5}|\*):[\w.*\-]{1,63}:[\w.*\-]{1,63}:)[^\n\s\"'\\]++"
    r"(?=\s*$|[\"'\\])",
    re.MULTILINE,
)
_SLACK_HOOK = re.compile(r"(?P<keep>hooks\.slack\.com/services/)[\w/\-]{8,}+", re.ASCII)
# Python before 3.11.5 matches a lookahead wrong inside of a possessive group (python/cpython#106052): none is in one.
# A CDATA section may hold "<"; one within another has none, which keeps the time linear.
_SPACE = r"(?:\s|\\{1,8}[nrt])"  # also as JSON writes it
_XML_VALUE = rf"{_SPACE}*+(?:<!\[CDATA\[(?P<cdata>(?:(?!\]\]>|<!\[CDATA\[).)+)\]\]>{_SPACE}*+|(?P<value>[^<]++))(?=</"
_XML_ELEMENT = re.compile(rf"<(?P<key>[\w.:\-]++)(?P<attributes>[^<>]*+)>{_XML_VALUE})", re.DOTALL)
_XML_PROPERTY = re.compile(
    rf"<(?P<tag>name|key)>(?P<key>[^<]++)(?P<attributes>)</(?P=tag)>{_SPACE}*+"
    # What else the property has.
    r"(?:<(?!/?(?:name|key|value|string|property|dict)>)[^<>]*+>[^<]*+)*"
    rf"<(?P<kind>value|string)>{_XML_VALUE}(?P=kind)>)",
    re.DOTALL,
)
_XML_NAME = re.compile(r"(?:name|key)\s{0,8}=\s{0,8}\\{0,8}[\"']([^\"'\\]{1,256})", re.IGNORECASE)
_PROSE = re.compile(r"tokens?|auth(?:entication|orization)?|schemes?|realm|headers?|format|challenge", re.IGNORECASE)
# With these a word alone before "@" may be a token; with others it is a place (an Azure container) or a mere login.
_TOKEN_AS_USER = re.compile(r"(?:git\+)?https?|git|mongodb|rediss?|amqps?", re.IGNORECASE)


def _mask_userinfo(match: re.Match[str]) -> str:
    userinfo, scheme = match["userinfo"], match["scheme"]
    if ":" not in userinfo and not (userinfo and _TOKEN_AS_USER.fullmatch(scheme)):
        return match[0]
    return f"{scheme}://{MASK}@"


def _mask_scheme_token(match: re.Match[str]) -> str:
    token = match["token"]
    if is_secret_key(token) and _SEPARATOR.match(match.string, match.end()):
        # What comes next is the secret.
        return match[0]
    if match["scheme"].lower() == "bearer":
        is_token = _PROSE.fullmatch(token.rstrip(".")) is None
    else:
        is_token = re.search(r"[0-9=]|[a-z][A-Z]", token) is not None
    return f"{match['scheme']}{match['gap']}{MASK}" if is_token else match[0]


def _mask_aws(match: re.Match[str]) -> str:
    return f"{MASK}{match['gap']}{MASK}" if match["rest"] else MASK


def _mask_piped(match: re.Match[str]) -> str:
    return f"{match['keep'] or match['here']}{MASK}"


def _mask_xml(match: re.Match[str]) -> str:
    keys = (match["key"].strip(), *_XML_NAME.findall(match["attributes"]))
    kind = "cdata" if match["value"] is None else "value"
    if not any(map(is_secret_key, keys)) or is_harmless_value(match[kind]):
        return match[0]
    start, stop = (end - match.start() for end in match.span(kind))
    return f"{match[0][:start]}{MASK}{match[0][stop:]}"


# The first is a part of every match.
_SHAPES: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (r"-----BEGIN ", _PEM, rf"\g<begin>{MASK}\g<end>"),
    (r"</", _XML_PROPERTY, _mask_xml),
    (r"</", _XML_ELEMENT, _mask_xml),
    (r"://\S*(?: \S*)?@", _USERINFO, _mask_userinfo),
    (r"(?i:jdbc:oracle:)\S*@", _ORACLE_LOGIN, rf"\g<keep>{MASK}@"),
    (r"(?i:bearer|basic)[ \t]", _SCHEME_TOKEN, _mask_scheme_token),
    (r"A(?:KIA|SIA|ROA|IDA)", _AWS_PAIR, _mask_aws),
    (rf"(?:^|[^A-Za-z0-9_\-]|\\[nrt]|%3D|%20)(?:{'|'.join(map(re.escape, _PREFIXES))})[\w\-.+/=]{{8}}", _TOKENS, MASK),
    (r"(?i:identified\s|password[ \t]+(?:for[ \t]|\\*[\"']))", _SQL_LOGIN, rf"\g<keep>\g<quote>{MASK}\g<quote>"),
    (r"(?i:identified\s)", _SQL_BARE_LOGIN, rf"\g<keep>{MASK}"),
    (r"--(?:proxy-)?user|curl", _FLAG_LOGIN, rf"\g<keep>{MASK}"),
    (r"hooks\.slack\.com", _SLACK_HOOK, rf"\g<keep>{MASK}"),
    (r"sshpass|beeline|cqlsh|login|mysql|mariadb|sqlcmd|bcp|ldap|redis-cli", _TOOL_PASSWORD, rf"\g<keep>{MASK}"),
    (r"kinit|sudo[ \t]|stdin", _PIPED_PASSWORD, _mask_piped),
    (r"login", _NETRC, rf"\g<keep>{MASK}"),
    (r":(?:\d{4,5}|\*):", _PGPASS, rf"\g<keep>{MASK}"),
)
_PREFILTERED = tuple((Prefilter(part), pattern, replacement) for part, pattern, replacement in _SHAPES)
may_have_shape = Prefilter("|".join(part for part, _, _ in _SHAPES))


def mask_name_shapes(name: str) -> str:
    """The name of a dataset without the logins of its URLs, and without tokens that nothing else looks like.

    ``abfss://container@account`` keeps its container.
    """
    if "@" in name:
        name = _ORACLE_LOGIN.sub(rf"\g<keep>{MASK}@", _USERINFO.sub(_mask_userinfo, name))
    return _UNMISTAKABLE.sub(MASK, _AWS_PAIR.sub(_mask_aws, name))


def mask_shapes(text: str) -> str:
    """The text with everything masked that looks like a secret."""
    if may_have_shape(text):
        for may_match, pattern, replacement in _PREFILTERED:
            if may_match(text):
                text = pattern.sub(replacement, text)
    return text


def shape_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the text looks like a secret; of an AWS pair with what is between the two."""
    for may_match, pattern, replacement in _PREFILTERED if may_have_shape(text) else ():
        for match in pattern.finditer(text) if may_match(text) else ():
            masked = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            if masked != match[0]:
                yield match.start() + masked.index(MASK), match.end() - (len(masked) - masked.rindex(MASK) - len(MASK))
