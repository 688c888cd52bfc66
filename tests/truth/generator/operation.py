"""What an operation is: it picks its arguments, says what it makes of a frame, and gives its Python or SQL text."""

from __future__ import annotations

from typing import Any, ClassVar

from generator.expressions import Draw
from generator.model import Frame

Arguments = dict[str, Any]


class Operation:
    """A step of a program. ``frame_text`` is a DataFrame, ``sql_text`` a query; one of the two may be missing."""

    kind: ClassVar[str]
    reads: ClassVar[int] = 1

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        """Arguments that suit the frames, None where it cannot be used on them."""
        raise NotImplementedError

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        """The frame that it makes; a KeyError where a column is not there."""
        raise NotImplementedError

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        """The Python expression that makes it a DataFrame, from variables of these names."""
        return None

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        """The query that makes it from tables or views of these names."""
        return None

    def prepare_text(self, arguments: Arguments) -> list[str]:
        """Lines that come before: what it defines."""
        return []

    def smaller(self, arguments: Arguments) -> list[Arguments]:
        """The same with less, for the search of the smallest program that fails."""
        found = []
        for key, value in arguments.items():
            if isinstance(value, list) and len(value) > 1:
                found += [{**arguments, key: value[:at] + value[at + 1 :]} for at in range(len(value))]
        return found
