"""What a check finds, and how bad that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: a ``problem`` would lose lineage, a ``warning`` may, or costs something else.

    ``remedy`` says what to do, empty where nothing is to be done.
    """

    level: Level
    text: str
    remedy: str = ""


def ok(text: str) -> Finding:
    """Return a line about what is as it should be."""
    return Finding("ok", text)


def warning(text: str, remedy: str) -> Finding:
    """Return a line about what is not as it should be, and loses no lineage by itself."""
    return Finding("warning", text, remedy)


def problem(text: str, remedy: str) -> Finding:
    """Return a line about what would lose lineage."""
    return Finding("problem", text, remedy)
