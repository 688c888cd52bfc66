"""Secrets that only their owner knows: what Airflow's secrets masker has, a job's own, and the user's patterns.

Nothing here imports Airflow: of its maskers those are asked that this process has imported.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from spark_lineage.secrets import user_patterns
from spark_lineage.secrets.secret_keys import LONGEST_KEY, MASK, PLAIN_KEY, is_harmless_value, is_secret_key

# Airflow 3 has one masker for tasks and one for its servers; Airflow 2 has one.
_MASKERS = ("airflow.sdk._shared.secrets_masker", "airflow._shared.secrets_masker", "airflow.utils.log.secrets_masker")

# Words, each perhaps with a number behind it: "landing", "orders_2024", "spark123"; perhaps as a URL: "s3://lake".
_NAME = re.compile(
    r"(?:(?:[a-z][a-z0-9+\-]*:)+(?=//))?[^\W\d_]*\d*(?:[-_./ ][^\W\d_]*\d*)*(?::\d{1,5}(?:/[^\W\d_]*\d*)*)?"
)
# Shorter values are told apart from ordinary text by nobody.
_LEAST_REMEMBERED = 6
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class _Owner:
    """What this process knows now.

    ``registered`` are the texts that Airflow knows and those ``remembered``, each with whether it could be a name.
    """

    def __init__(self) -> None:
        self.given: tuple[user_patterns.Pattern, ...] = ()
        self.section: tuple[user_patterns.Pattern, ...] = ()
        self.remembered: frozenset[str] = frozenset()
        self.registered: tuple[tuple[str, bool], ...] = ()
        self._section_of: object = self
        self.generation = 0
        self._count = 0
        self._sets: list[set[str]] = []

    def refresh(self) -> None:
        """Look whether Airflow was imported meanwhile, and whether it has registered more."""
        airflow = user_patterns.airflow_configuration()
        if airflow is not self._section_of:
            # Before it is read: whoever handles a log line of that may ask to have it masked.
            self._section_of = airflow
            self.section = user_patterns.compile_usable(user_patterns.section_patterns(airflow))
            self.generation += 1
        sets = [*filter(None, map(_registered_in, _MASKERS))]
        # A set only grows, the remembered ones too; a masker that is reset takes a new one.
        count = sum(map(len, sets), len(self.remembered))
        if count != self._count or sets != self._sets:
            self._count, self._sets = count, sets
            known = {_ESCAPED.sub(r"\1", each) for patterns in sets for each in tuple(patterns)}
            self.registered = _forms(known | self.remembered)
            self.generation += 1


_owner = _Owner()


def use_patterns(patterns: Iterable[str]) -> None:
    """Have what these match masked in this process from now on, besides what the patterns of ``[spark_lineage]`` match.

    They take the place of those of an earlier call. One that cannot be used is left out, with a warning.
    """
    _owner.given = user_patterns.compile_usable(patterns)
    _owner.generation += 1


def remember_values(properties: Mapping[str, Any]) -> None:
    """Have the values under keys that name secrets masked in this process from now on, wherever they show.

    Values that are short, or could be a name (``hive``), are not: they would tear holes into ordinary text.
    """
    found = {
        value
        for key, value in ((str(key), str(value)) for key, value in properties.items())
        if is_secret_key(key) and len(value) >= _LEAST_REMEMBERED and _NAME.fullmatch(value) is None
    }
    if not found <= _owner.remembered:
        _owner.remembered |= found


def generation() -> int:
    """Return what stays the same as long as each text is masked in the same way: a part of the key for a cache."""
    _owner.refresh()
    return _owner.generation


def mask_own(text: str, *, is_name: bool = False, is_first: bool = False) -> str:
    """Return the text with the owner's secrets masked; those that touch each other become one ``***``.

    :param is_name: the text is identity, of a dataset, a job or a column: a registered secret that could be a name
        itself stays, since there it is a common word far more often than the secret. What a pattern matches goes
    :param is_first: only what holds no part of a key such as ``db.password``, which must still tell what it is
    """
    _owner.refresh()
    if not (_owner.given or _owner.section or _owner.registered):
        return text
    spans = [*_pattern_spans(text), *_registered_spans(text, is_name=is_name)]
    if not spans:
        return text
    parts: list[str] = []
    end = -1
    for start, stop in sorted(spans):
        if not text[start:stop].strip("*") or (is_first and _is_in_key(text, start, stop)):
            continue
        if start > end:
            parts += (text[max(end, 0) : start], MASK)
        end = max(end, stop)
    return "".join((*parts, text[end:])) if parts else text


def _is_in_key(text: str, start: int, stop: int) -> bool:
    """Whether a stretch shares a character with a key of a secret."""
    around = PLAIN_KEY.finditer(text, max(0, start - LONGEST_KEY), stop + LONGEST_KEY)
    return any(key.start() < stop and key.end() > start and is_secret_key(key[0]) for key in around)


def _pattern_spans(text: str) -> Iterator[tuple[int, int]]:
    if not (_owner.given or _owner.section):
        return
    # RE2 reads UTF-8, which has no surrogates.
    readable = _SURROGATE.sub("\ufffd", text)
    for pattern in (*_owner.section, *_owner.given):
        for match in pattern.finditer(readable):
            groups = [match.span(number) for number in range(1, pattern.groups + 1)]
            taken = [span for span in groups if span[0] >= 0]
            yield from (span for span in taken or [match.span()] if span[0] < span[1])


def _registered_spans(text: str, *, is_name: bool) -> Iterator[tuple[int, int]]:
    for secret, can_be_name in _owner.registered:
        if is_name and can_be_name:
            continue
        position = text.find(secret)
        while position >= 0:
            yield position, position + len(secret)
            position = text.find(secret, position + len(secret))


def _registered_in(module: str) -> set[str]:
    """Return the escaped secrets of a masker; Airflow leaves out those that are too short."""
    masker = getattr(sys.modules.get(module), "_secrets_masker", None)
    if masker is None:
        return set()
    try:
        patterns = masker().patterns
    except Exception:
        # Airflow 2 has none where no task logging is set up.
        return set()
    return patterns if isinstance(patterns, set) else set()


def _forms(secrets: Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """Each secret as it is, and as a URL and JSON write it; with whether it could be a name."""
    forms: dict[str, bool] = {}
    for secret in secrets:
        if not is_harmless_value(secret):
            can_be_name = _NAME.fullmatch(secret) is not None
            encoded = (quote(secret, "", errors="replace"), quote_plus(secret, errors="replace"))
            escaped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
            forms |= dict.fromkeys((secret, *encoded, *escaped), can_be_name)
    return tuple(sorted(forms.items()))
