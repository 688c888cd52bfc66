"""Masks secrets in text, commands, nested values and events; harmless text stays byte for byte.

A secret is recognised by its key or shape (``secret_keys``), or is known to its owner: Airflow's secrets masker, a job,
and the user's patterns. Masking is idempotent, and its time grows linearly with the text, up to a bound.

Nothing here imports Airflow: only maskers that this process has imported are used, and the option
``[spark_lineage] redaction_patterns`` is read where Airflow would read it.
"""

from __future__ import annotations

import configparser
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from spark_lineage.secrets.secret_keys import (
    LONGEST_KEY,
    MASK,
    PLAIN_KEY,
    VALUE_OF_PAIR,
    Prefilter,
    has_secret_value,
    is_harmless_value,
    is_secret_key,
    is_secret_pair,
    mask_keyed,
    mask_name_shapes,
    mask_shapes,
    mask_spans,
    may_have_key,
    may_have_pair,
    may_have_shape,
    shape_spans,
)

if TYPE_CHECKING:
    Pattern = Any
    """A compiled expression of RE2, which has no types."""

_log = logging.getLogger(__name__)

_SECTION, _OPTION = "spark_lineage", "redaction_patterns"
# Airflow 3 has one masker for tasks and one for its servers; Airflow 2 has one.
_MASKERS = ("airflow.sdk._shared.secrets_masker", "airflow._shared.secrets_masker", "airflow.utils.log.secrets_masker")
# In a task of Airflow 3 what is registered also reaches the process that writes its log.
_REGISTRIES = ("airflow.sdk.log", "airflow.utils.log.secrets_masker")
# Words, each perhaps with a number behind it: "landing", "orders_2024", "spark123"; perhaps as a URL: "s3://lake".
_NAME = re.compile(
    r"(?:(?:[a-z][a-z0-9+\-]*:)+(?=//))?[^\W\d_]*\d*(?:[-_./ ][^\W\d_]*\d*)*(?::\d{1,5}(?:/[^\W\d_]*\d*)*)?"
)
# A word is not alone that is a part of another, or of a path: "s3://landing/orders", "landing-zone", "landing.orders".
_BEFORE, _BEHIND = re.compile(r"[\w/.-]\Z"), re.compile(r"[\w/-]|\.\w")
# Shorter values occur in ordinary text.
_LEAST_REMEMBERED = 6
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class PatternError(ValueError):
    """A pattern that cannot be used; the text says why without the pattern, which may be a secret itself."""


@dataclass
class _Owner:
    """The secrets and patterns that this process knows.

    ``registered`` are the texts that Airflow knows and those ``remembered``, each with whether it could be a name, and
    whether it is masked only where it stands alone.
    """

    given: tuple[Pattern, ...] = ()
    section: tuple[Pattern, ...] = ()
    remembered: frozenset[str] = frozenset()
    registered: tuple[tuple[str, bool, bool], ...] = ()
    generation: int = 0
    _section_of: object = ""
    _count: int = 0
    _sets: list[set[str]] = field(default_factory=list)

    def refresh(self) -> None:
        """Look whether Airflow was imported meanwhile, and whether it has registered more."""
        airflow = airflow_configuration()
        if airflow is not self._section_of:
            # Before it is read: whoever handles a log line of that may ask to have it masked.
            self._section_of = airflow
            self.section = _usable(section_patterns(airflow))
            self.generation += 1
        sets = []
        for masker in (getattr(sys.modules.get(name), "_secrets_masker", None) for name in _MASKERS):
            # Airflow 2 has none where no task logging is set up.
            with suppress(Exception):
                if masker is not None and isinstance(patterns := masker().patterns, set) and patterns:
                    sets.append(patterns)
        # A set only grows, the remembered ones too; a masker that is reset takes a new one.
        count = sum(map(len, sets), len(self.remembered))
        if count != self._count or sets != self._sets:
            self._count, self._sets = count, sets
            known = {_ESCAPED.sub(r"\1", each) for patterns in sets for each in tuple(patterns)}
            self.registered = _forms(known, self.remembered - known)
            self.generation += 1


_owner = _Owner()


def use_patterns(patterns: Iterable[str]) -> None:
    """Mask what these match in this process from now on, besides what the patterns of ``[spark_lineage]`` match.

    They take the place of those of an earlier call. One that cannot be used is left out, with a warning.
    """
    _owner.given = _usable(patterns)
    _owner.generation += 1


def remember_texts(texts: Iterable[str]) -> None:
    """Mask these in this process from now on, wherever they show; one that could be a name where it stands alone.

    Airflow's masker gets those that could not: other providers log what they send to a service, and its answers.
    """
    new = {text for text in texts if len(text) >= _LEAST_REMEMBERED} - _owner.remembered
    _owner.remembered |= new
    found = (getattr(sys.modules.get(name), "mask_secret", None) for name in _REGISTRIES)
    if mask_secret := next(filter(None, found), None):
        for text in (text for text in new if _NAME.fullmatch(text) is None and not is_harmless_value(text)):
            with suppress(Exception):
                mask_secret(text)


def generation() -> int:
    """Return what stays the same as long as each text is masked in the same way: a part of the key for a cache."""
    _owner.refresh()
    return _owner.generation


def mask_own(text: str, *, is_name: bool = False, is_first: bool = False) -> str:
    """Return the text with the owner's secrets masked; those that touch each other become one ``***``.

    :param is_name: the text is identity, of a dataset, a job or a column: a registered secret that could be a name
        itself stays, since there it is a common word far more often than the secret. What a pattern matches goes
    :param is_first: only what holds no part of a key such as ``db.password``, which must still be read as a key
    """
    _owner.refresh()
    patterns = (*_owner.section, *_owner.given)
    if not (patterns or _owner.registered):
        return text
    spans = [*(_pattern_spans(text, patterns) if patterns else ()), *_registered_spans(text, is_name=is_name)]
    if not spans:
        return text
    unmasked = ((start, stop) for start, stop in spans if text[start:stop].strip("*"))
    masked = [span for span in unmasked if not (is_first and _is_in_key(text, *span))]
    # A token that holds a registered secret has no shape any more once that is masked.
    return mask_spans(text, (*masked, *shape_spans(text)) if masked and is_first else masked)


def _is_in_key(text: str, start: int, stop: int) -> bool:
    """Whether a stretch shares a character with a key of a secret."""
    around = PLAIN_KEY.finditer(text, max(0, start - LONGEST_KEY), stop + LONGEST_KEY)
    return any(key.start() < stop and key.end() > start and is_secret_key(key[0]) for key in around)


def _pattern_spans(text: str, patterns: Iterable[Pattern]) -> Iterator[tuple[int, int]]:
    # RE2 reads UTF-8, which has no surrogates.
    readable = _SURROGATE.sub("\ufffd", text)
    for match in (match for pattern in patterns for match in pattern.finditer(readable)):
        groups = [match.span(number) for number in range(1, match.re.groups + 1)]
        taken = [span for span in groups if span[0] >= 0]
        yield from (span for span in taken or [match.span()] if span[0] < span[1])


def _registered_spans(text: str, *, is_name: bool) -> Iterator[tuple[int, int]]:
    for secret, can_be_name, is_alone in _owner.registered:
        if is_name and can_be_name:
            continue
        position = text.find(secret)
        while position >= 0:
            end = position + len(secret)
            if not is_alone or (_BEFORE.search(text, 0, position) is None and _BEHIND.match(text, end) is None):
                yield position, end
            position = text.find(secret, end)


def _forms(known: Iterable[str], remembered: Iterable[str]) -> tuple[tuple[str, bool, bool], ...]:
    """Return each secret as it is, and as a URL and JSON write it; as ``_Owner.registered`` has them."""
    forms: dict[str, tuple[bool, bool]] = {}
    for secrets, is_remembered in ((remembered, True), (known, False)):
        for secret in secrets:
            if not is_harmless_value(secret):
                can_be_name = _NAME.fullmatch(secret) is not None
                encoded = (quote(secret, "", errors="replace"), quote_plus(secret, errors="replace"))
                escaped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
                forms |= dict.fromkeys((secret, *encoded, *escaped), (can_be_name, can_be_name and is_remembered))
    return tuple((form, *how) for form, how in sorted(forms.items()))


def compile_pattern(pattern: str) -> Pattern:
    """Return the RE2 expression of a pattern; RE2's time is linear in the text, whatever the pattern.

    :raises PatternError: for what RE2 does not understand, and for what matches an empty text, and so everywhere
    """
    try:
        import re2
    except ImportError as error:
        raise PatternError(f"the package google-re2 cannot be imported ({error}); install it") from None
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        # The text after the colon is a part of the pattern.
        parts = (reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)).partition(":")[0]
        raise PatternError(f"RE2 cannot read it ({parts}); RE2 has no look-around and no back-references") from None
    except UnicodeEncodeError:
        raise PatternError("it is not valid Unicode") from None
    if compiled.search("") is not None:
        raise PatternError("it matches an empty text; have it match at least one character")
    return compiled


def airflow_configuration() -> ModuleType | None:
    """Return the module of Airflow that has its configuration, if this process has imported one."""
    for name in ("airflow.sdk.configuration", "airflow.configuration"):
        if (module := sys.modules.get(name)) is not None and "conf" in vars(module):
            return module
    return None


def section_patterns(airflow: ModuleType | None) -> tuple[str, ...]:
    """Return the patterns of the option, one a line; none where it cannot be read, which is logged.

    :param airflow: from :func:`airflow_configuration`
    """
    try:
        text = _from_outside() if airflow is None else airflow.conf.get(_SECTION, _OPTION, fallback=None)
    except Exception as error:
        _log.warning("[%s] %s cannot be read (%s): it masks nothing.", _SECTION, _OPTION, type(error).__name__)
        return ()
    return tuple(line.strip() for line in (text or "").splitlines() if line.strip())


def _from_outside() -> str | None:
    if (text := os.environ.get(f"AIRFLOW__{_SECTION}__{_OPTION}".upper())) is not None:
        return text
    home = os.environ.get("AIRFLOW_HOME") or "~/airflow"
    parser = configparser.ConfigParser(strict=False, allow_no_value=True)
    # It passes over a file that is not there.
    parser.read(Path(os.environ.get("AIRFLOW_CONFIG") or f"{home}/airflow.cfg").expanduser(), encoding="utf-8")
    return parser.get(_SECTION, _OPTION, fallback=None)


@lru_cache(maxsize=64)
def _usable_pattern(pattern: str, number: int) -> Pattern | None:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        _log.warning("Pattern %d of %s masks nothing: %s.", number, _OPTION, error)
        return None


def _usable(patterns: Iterable[str]) -> tuple[Pattern, ...]:
    return tuple(filter(None, (_usable_pattern(pattern, number) for number, pattern in enumerate(patterns, 1))))


# Masking may bring a second secret to light (a login within a login). Two rounds do for all text that we have seen.
_ROUNDS = 8
# A line of that many characters takes half a second at worst, and no one reads on. What is kept is so much shorter that
# a text which was cut is not cut again, however long its masks are.
_LONGEST = 1_000_000
_KEPT = 250_000
# Of a value in which secrets are looked for.
_LONGEST_VALUE, _MOST_SECRETS = 4_000, 4
# Variables of a shell; ``PWD`` of an ODBC connection is a password.
_DIRECTORIES = ("PWD", "OLDPWD")
# Nothing that OpenLineage knows is nested so deep, and Python has a thousand levels in all.
_MAX_LEVELS = 200
# Where it may be cut: no secret with a shape of its own has one of these in it.
_CUT_AT = " \t\n\"',&;"
_CUT_WITHIN = 10_000
_may_have_secret = Prefilter(
    "|".join(f"(?:{each.expression})" for each in (may_have_key, may_have_pair, may_have_shape))
)
# Of a terminal, and as JSON and Python write them.
_COLOURS = re.compile(r"(?:\x1b|\\{1,8}(?:u00|x)1b)\[[0-9;]*+[A-Za-z]", re.IGNORECASE)
# What keys of specifications look like: a common word that is registered as a secret must not take them apart.
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Of properties, with those of OpenLineage's transports.
_PRIVATE_KEY = re.compile(r"auth|api.?key|token|password|secret|headers|sasl|jaas|credential", re.IGNORECASE)
_PARAMETER = re.compile(r"(?P<key>(?<=[?&;])[\w.\-]++=)(?P<value>[^&;#\s]++)")
_FLAG = re.compile(r"-[\w.\-]*")
# Flags of curl and others that take ``user:password``.
_LOGIN_FLAGS = frozenset({"--user", "--proxy-user"})
_LOGIN = re.compile(r"(?!\d+:\d+\Z)(?P<keep>[^\s:/]+:)(?!//).+", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?P<key>-{0,2}[\w.\-]+)=(?P<value>.*)", re.DOTALL)
# What a query sets, in bounded time: ``password 'x'``, ``'password' = "x"``, also over several lines and comments.
_GAP = r"(?:\s{1,64}+|--[^\n]{0,200}+\n|/\*[^*]{0,200}+(?:\*++[^*/][^*]{0,200}+){0,20}+\*++/){0,8}+"
_LITERAL = r"'(?:[^'\\]|\\.){0,4000}+'|\"(?:[^\"\\]|\\.){0,4000}+\""
_OPTION_OF_QUERY = re.compile(rf"(?si)(?<![\w.$\-])([\w.$\-]++)[`'\"]?{_GAP}=?{_GAP}r?({_LITERAL})")
_SET_OF_QUERY = re.compile(r"(?i)\bSET\s{1,64}([\w.$\-]++)[ \t]*+=[ \t]*+([^\s;'\"]++)")
# What is before a column that is compared.
_COMPARES, _LONGEST_CONDITION = re.compile(r"(?i)\b(?:where|and|or|on|not|having|when)[\s(]+(?:`?\w+`?\.)*`?\Z"), 64
# Texts of an event that hold no secret, by their keys.
_UNTOUCHED = frozenset({"eventType", "eventTime", "producer", "schemaURL", "_producer", "_schemaURL"})
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]{5,20}(?:Z|[+-]\d\d:?\d\d)?")
# The keys in these are names of facets, and the keys in those are names of columns.
_FACETS = frozenset({"facets", "inputFacets", "outputFacets"})
_COLUMN_MAPS = frozenset({"fields", "columnMetrics"})
# Lists of columns, objects that are columns (whose types name columns within them), and texts that are names alone.
_COLUMNS = frozenset({"fields[]", "schema[]", "old", "new"})
_NAMES = frozenset({"field", "column", "objectName", "previousObjectName", "database", "partitionedBy"})


def redact(text: str) -> str:
    """The text with its secrets replaced by ``***``; doing it again changes nothing.

    Of more than a million characters the first 250,000 stay, with how many were left out.
    """
    return _settled(text if len(text) <= _LONGEST else _shortened(text), _mask)


def beginning(text: str, length: int) -> str:
    """The first characters of a text: half a secret has no shape, and is masked before the rest is cut off."""
    return redact(text)[:length]


def holds_secret(key: str, value: str) -> bool:
    """Whether a property is one for no one else: it must not reach a command line, which every process can read."""
    return _PRIVATE_KEY.search(key) is not None or is_secret_key(key) or redact(value) != value


def redact_name(name: str) -> str:
    """The name of a job: as text, but a registered secret that could be a name as well stays."""
    return _settled(name if len(name) <= _LONGEST else _shortened(name), _mask_name)


def redact_dataset(name: str) -> str:
    """The namespace or name of a dataset, or of a column, without URL logins, secret parameters and plain tokens.

    All else is identity and stays (``password``, ``Bearer shares``), a registered secret too if it could be a name.
    """
    return _settled(name, _mask_dataset)


def redact_key(key: str) -> str:
    """The key of a map, which may come from anywhere; one that is a word is masked by its shape alone."""
    if _WORD.fullmatch(key):
        return mask_shapes(key)
    return _settled(key, lambda each: mask_own(mask_shapes(each), is_name=True))


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
    return Redaction().value(value)


class Redaction:
    """One pass over nested values, which say the same few things over and over: each text is looked at once."""

    hides_all = True
    """Whether all becomes ``***`` under a secret key; else numbers become 0, and the rest keeps its form."""
    masks_of_keys: Mapping[str, Callable[[str], str]] = {}
    """What masks the keys of a mapping, by its place, where these are names; other keys are masked as such."""

    def __init__(self) -> None:
        self._known: dict[tuple[Callable[[str], str], str], str] = {}

    def value(
        self, value: Any, key: str = "", *, level: int = 0, mask: Callable[[str], str] = redact, is_secret: bool = False
    ) -> Any:
        """Return a value without secrets; ``key`` is what it stands under, with ``[]`` behind it in a list."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) and not (is_secret and mask is not str):
            return self._text(value, mask)
        if isinstance(value, str) or (is_secret and self.hides_all):
            return value if isinstance(value, str) and is_harmless_value(value) else MASK
        if isinstance(value, Mapping):
            return self._mapping(value, key, level=level + 1, is_secret=is_secret) if level < _MAX_LEVELS else {}
        if isinstance(value, (list, tuple)):
            return self._list(value, key, level=level + 1, is_secret=is_secret) if level < _MAX_LEVELS else []
        return type(value)(0) if is_secret and isinstance(value, (int, float)) else value

    def mask_of(self, key: str, siblings: Mapping[str, Any], place: str) -> Callable[[str], str]:  # noqa: ARG002
        """Return what masks a text under a key; ``str`` for one that stays, even under a secret key."""
        return redact

    def _text(self, text: str, mask: Callable[[str], str]) -> str:
        if (mask, text) not in self._known:
            self._known[mask, text] = mask(text)
        return self._known[mask, text]

    def _mapping(self, value: Mapping[Any, Any], place: str, *, level: int, is_secret: bool) -> dict[Any, Any]:
        is_pair, key_mask = has_secret_value(value), self.masks_of_keys.get(place, redact_key)
        result: dict[Any, Any] = {}
        for key, each in value.items():
            name, new_key = "", key
            if isinstance(key, str):
                name, new_key = key, self._text(key, key_mask)
                while new_key in result:
                    # Another differed in its secret.
                    new_key += "*"
            is_of_secret = is_secret_key(name) and (key_mask is redact_key or not isinstance(each, Mapping))
            result[new_key] = self.value(
                each,
                name,
                level=level,
                mask=self.mask_of(name, value, place),
                is_secret=is_secret or (is_pair and key in VALUE_OF_PAIR) or is_of_secret,
            )
        return result

    def _list(self, value: Sequence[Any], key: str, *, level: int, is_secret: bool) -> list[Any]:
        mask = self.mask_of(key, {}, "")
        if mask is redact and not is_secret and all(isinstance(each, str) for each in value):
            # The arguments of a command, perhaps.
            return redact_command(value)
        return [self.value(each, f"{key}[]", level=level, mask=mask, is_secret=is_secret) for each in value]


def redact_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a ``RunEvent`` without secrets; doing it again changes nothing.

    Names of datasets keep what is identity (``redact_dataset``), and columns may be called ``password``. Under a key
    that names a secret every text becomes ``***``, and every number 0.
    """
    redacted: dict[str, Any] = _EventRedaction().value(event)
    return redacted


class _EventRedaction(Redaction):
    hides_all = False
    masks_of_keys: Mapping[str, Callable[[str], str]] = {
        **dict.fromkeys(_FACETS, str),
        **dict.fromkeys(_COLUMN_MAPS, redact_dataset),
    }

    def mask_of(self, key: str, siblings: Mapping[str, Any], place: str) -> Callable[[str], str]:
        if isinstance(text := siblings.get(key), str):
            is_id = key == "runId" and _UUID.fullmatch(text)
            is_time = key.lower().endswith("time") and _TIME.fullmatch(text)
            if key in _UNTOUCHED or is_id or is_time:
                return str
        if key in _NAMES or (key in ("name", "type") and place in _COLUMNS and "namespace" not in siblings):
            return redact_dataset
        if place == "dataSource" and key in ("name", "uri"):
            return redact_dataset
        if key in ("namespace", "name") and "namespace" in siblings and "name" in siblings:
            return redact_name if place == "job" else redact_dataset
        return redact


def remember_values(properties: Mapping[str, Any]) -> None:
    """Mask the values under keys that name secrets in this process from now on, and the secrets in all other values.

    Those are passwords in URLs and in JAAS configurations. Values that are short are not remembered, and one that could
    be a name (``hive``) is masked where it stands alone: they would tear holes into ordinary text.
    """
    texts = {str(key): str(value) for key, value in properties.items() if key not in _DIRECTORIES}
    remember_texts(value for key, value in texts.items() if is_secret_key(key))
    for text in texts.values():
        if len(text) <= _LONGEST_VALUE and MASK not in text:
            parts = mask_keyed(mask_shapes(text)).split(MASK)
            if 1 < len(parts) <= _MOST_SECRETS + 1:
                match = re.fullmatch("(.+?)".join(map(re.escape, parts)), text, re.DOTALL)
                # Of a login the password is what shows up elsewhere.
                found = match.groups() if match is not None else ()
                remember_texts(part for secret in found for part in (secret, secret.partition(":")[2]))


def remember_query(query: str) -> None:
    """Learn what SQL sets under secret keys: Spark prints a query that fails line by line."""
    start = query[:_LONGEST]
    options = [one for one in _OPTION_OF_QUERY.finditer(start) if not _is_of_data(one)]
    for key, value in (*(one.groups() for one in options), *_SET_OF_QUERY.findall(start)):
        # In its quotes it cannot be a name, which stays in the log.
        remember_values({key: value.strip("'\""), f"quoted.{key}": value})


def _is_of_data(option: re.Match[str]) -> bool:
    """Whether a query compares a column with a value that could be a name."""
    before = _COMPARES.search(option.string, max(0, option.start() - _LONGEST_CONDITION), option.start())
    return before is not None and _NAME.fullmatch(option[2][1:-1]) is not None


def explain_error(error: BaseException, cause: str) -> None:
    """Put why the application failed before the text of an exception, which is the command and the end of its log."""
    # The text of an error of Java is in its JVM, which may be gone.
    with suppress(Exception):
        if cause and error.args and isinstance(error.args[0], str) and not str(error).startswith(cause):
            error.args = (f"{cause}\n{error.args[0]}", *error.args[1:])


def redact_error(error: BaseException) -> None:
    """Redact an exception, what it was raised from, its notes, and the members of a group.

    So are texts, lists and maps among its attributes, of which it may make its text (``CalledProcessError.cmd``). Other
    objects stay what they are.
    """
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        current = todo.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.args = tuple(redact_value(arg) for arg in current.args)
        if isinstance(current, OSError):
            # Its text comes from these, which no longer follow its arguments.
            for name in ("strerror", "filename", "filename2"):
                text = getattr(current, name)
                if isinstance(text, str):
                    setattr(current, name, redact(text))
        own = {key: value for key, value in vars(current).items() if isinstance(value, (str, list, tuple, dict))}
        # Not by setattr: a property may stand before it.
        vars(current).update(redact_value(own))
        if notes := getattr(current, "__notes__", None):
            current.__notes__ = [redact(str(note)) for note in notes]
        if isinstance(current, BaseExceptionGroup):
            todo.extend(current.exceptions)
        todo += [current.__cause__, current.__context__]


@contextmanager
def clean_errors() -> Iterator[None]:
    """Redact an error that goes through, as :func:`redact_error` does: whoever gets it logs it."""
    try:
        yield
    except Exception as error:
        redact_error(error)
        raise


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


def _shortened(text: str) -> str:
    end = max(text.rfind(mark, _KEPT - _CUT_WITHIN, _KEPT) for mark in _CUT_AT)
    end = _KEPT if end < 0 else end
    return f"{text[:end]} ... ({len(text) - end} more characters)"


def _mask(text: str, *, is_name: bool = False) -> str:
    if _may_have_secret(text):
        # The owner's secrets come first, for a mask within one would hide the rest of it; but keys must be read before.
        text = mask_keyed(mask_shapes(mask_own(text, is_name=is_name, is_first=True)))
    return mask_own(text, is_name=is_name)


_mask_name = partial(_mask, is_name=True)


def _mask_dataset(name: str) -> str:
    name = mask_own(name, is_name=True, is_first=True)
    return mask_own(_PARAMETER.sub(_mask_parameter, mask_name_shapes(name)), is_name=True)


def _redact_under(key: str, value: str) -> str:
    if not is_secret_key(key):
        return redact(value)
    return value if is_harmless_value(value) else MASK


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
