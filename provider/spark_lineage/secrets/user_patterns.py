"""The user's own patterns of secrets: how they are written, and where ``[spark_lineage] redaction_patterns`` is read.

Airflow is not imported for it: where this process has not done so, the option is read where Airflow would read it.
"""

from __future__ import annotations

import configparser
import logging
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Pattern = Any
    """A compiled expression of RE2, which has no types."""

_log = logging.getLogger(__name__)

_SECTION, _OPTION = "spark_lineage", "redaction_patterns"
_VARIABLE = "AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS"
_CONFIGURATIONS = ("airflow.sdk.configuration", "airflow.configuration")


class PatternError(ValueError):
    """A pattern that cannot be used; the text says why without the pattern, which may be a secret itself."""


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
        words = (reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)).partition(":")[0]
        raise PatternError(f"RE2 cannot read it ({words}); RE2 has no look-around and no back-references") from None
    except UnicodeEncodeError:
        raise PatternError("it is no valid Unicode") from None
    if compiled.search("") is not None:
        raise PatternError("it matches an empty text; have it match at least one character")
    return compiled


def parse_patterns(text: str) -> tuple[str, ...]:
    """Return the patterns of an option's text, one a line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def compile_usable(patterns: Iterable[str]) -> tuple[Pattern, ...]:
    """Return the expressions; a pattern that cannot be used is left out, with a warning."""
    return tuple(each for number, pattern in enumerate(patterns, 1) if (each := _usable(pattern, number)) is not None)


def airflow_configuration() -> ModuleType | None:
    """Return the module of Airflow that has its configuration, if this process has imported one."""
    for name in _CONFIGURATIONS:
        module = sys.modules.get(name)
        if module is not None and "conf" in vars(module):
            return module
    return None


def section_patterns(airflow: ModuleType | None) -> tuple[str, ...]:
    """Return the patterns of the option; none where it cannot be read, which is logged.

    :param airflow: from :func:`airflow_configuration`
    """
    try:
        text = _from_outside() if airflow is None else airflow.conf.get(_SECTION, _OPTION, fallback=None)
    except Exception as error:
        _log.warning("[%s] %s cannot be read (%s): it masks nothing.", _SECTION, _OPTION, type(error).__name__)
        return ()
    return parse_patterns(text or "")


def _from_outside() -> str | None:
    if _VARIABLE in os.environ:
        return os.environ[_VARIABLE]
    home = os.environ.get("AIRFLOW_HOME") or "~/airflow"
    path = Path(os.environ.get("AIRFLOW_CONFIG") or f"{home}/airflow.cfg").expanduser()
    if not path.is_file():
        return None
    parser = configparser.ConfigParser(strict=False, allow_no_value=True)
    parser.read(path, encoding="utf-8")
    return parser.get(_SECTION, _OPTION, fallback=None)


@lru_cache(maxsize=256)
def _usable(pattern: str, number: int) -> Pattern | None:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        _log.warning("Pattern %d of %s masks nothing: %s.", number, _OPTION, error)
        return None
