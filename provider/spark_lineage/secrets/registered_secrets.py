"""Secrets that only their owner knows: those of Airflow's secrets masker, of a job, and of the user's patterns.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from spark_lineage.secrets.secret_keys import LONGEST_KEY, PLAIN_KEY, is_harmless_value, is_secret_key, mask_spans
from spark_lineage.secrets.secret_shapes import shape_spans

if TYPE_CHECKING:
    Pattern = Any
    """A compiled expression of RE2, which has no types."""

_log = logging.getLogger(__name__)

_SECTION, _OPTION = "spark_lineage", "redaction_patterns"
# Airflow 3 has one masker for tasks and one for its servers; Airflow 2 has one.
_MASKERS = ("airflow.sdk._shared.secrets_masker", "airflow._shared.secrets_masker", "airflow.utils.log.secrets_masker")
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
    """What this process knows now.

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
        sets = [*filter(None, map(_registered_in, _MASKERS))]
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
    """Mask these in this process from now on, wherever they show; one that could be a name where it stands alone."""
    _owner.remembered |= {text for text in texts if len(text) >= _LEAST_REMEMBERED}


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


def _registered_in(module: str) -> set[str]:
    """Return the escaped secrets of a masker; Airflow leaves out those that are too short."""
    masker = getattr(sys.modules.get(module), "_secrets_masker", None)
    try:
        patterns = masker().patterns if masker is not None else None
    except Exception:
        # Airflow 2 has none where no task logging is set up.
        return set()
    return patterns if isinstance(patterns, set) else set()


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
        # What comes after the colon is a part of the pattern.
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
