"""Folds lines into parts, on executors: what one file says of one application, as state, and never as events."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote

from spark_lineage.archive.local_files import Piece
from spark_lineage.collect.lineage_files import application_of_launch, is_status_file, lines
from spark_lineage.launch.line import LineCounts, LineDecoder, LineError, decode_transition
from spark_lineage.merge.state import LineageState, application_run_id
from spark_lineage.merge.stored_state import encode_state

PART = "file string, application string, parent string, content binary, read bigint, set_aside map<string, bigint>"
"""The schema of ``Part``, in Spark's words."""

_TAB = b"\t"
# Java writes no authority as three slashes in one place, and as one in another.
_NO_AUTHORITY = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*:)///")


class Part(NamedTuple):
    """What one file, or a split of one, says of one application: its state, and the run that it names as its parent.

    A part without ``application`` has the counts of the lines of its file, by reason where they were set aside.
    """

    file: str
    application: str | None
    parent: str | None
    content: bytes | None
    read: int | None
    set_aside: Mapping[str, int] | None


def fold_pieces(pieces: Iterable[Piece]) -> Iterator[Part]:
    """Fold what ``reading.pieces`` gives."""
    decoder = LineDecoder()
    for piece in pieces:
        fold = _Fold(piece.path, decoder)
        # Of a file that is gone by now there is no part, which the driver sees.
        with suppress(FileNotFoundError):
            for line in piece.lines():
                fold.add(line)
            yield from fold.parts()


def fold_lines(located: Iterable[bytes]) -> Iterator[Part]:
    """Fold lines that come as ``reading.lines`` gives them."""
    prefix, fold = b"", None
    decoder = LineDecoder()
    for line in located:
        if fold is None or not line.startswith(prefix):
            if fold is not None:
                yield from fold.parts()
            prefix = line[: line.index(_TAB) + 1]
            fold = _Fold(_NO_AUTHORITY.sub(r"\1/", unquote(prefix[:-1].decode())), decoder)
        fold.add(line[len(prefix) :])
    if fold is not None:
        yield from fold.parts()


def fold_files(files: Iterable[tuple[str, bytes]]) -> Iterator[Part]:
    """Fold compressed files that come as ``reading.files`` gives them."""
    decoder = LineDecoder()
    for path, content in files:
        fold = _Fold(path, decoder)
        for line in lines(io.BytesIO(content), path):
            fold.add(line)
        yield from fold.parts()


def fold_large_file(contents: Iterable[bytes], *, path: str) -> Iterator[Part]:
    """Fold one compressed file that comes as ``reading.large_file`` gives it."""
    return fold_files((path, content) for content in contents)


class _Fold:
    """Folds the lines of one file."""

    def __init__(self, path: str, decoder: LineDecoder) -> None:
        self._path = path
        self._decode = decoder.decode
        self._counts = LineCounts()
        self._states: dict[str, LineageState] = {}
        self._add = self._add_transition if is_status_file(path) else self._add_event
        self._launch = application_of_launch(path)

    def add(self, line: bytes | LineError) -> None:
        try:
            if isinstance(line, LineError):
                raise line
            self._add(line)
        except LineError as error:
            self._counts.add(error.reason)
        else:
            self._counts.read += 1

    def _add_event(self, line: bytes) -> None:
        event, inputs, outputs = self._decode(line)
        self._state(application_run_id(event)).add(event, inputs, outputs)

    def _add_transition(self, line: bytes) -> None:
        if self._launch is None:
            raise LineError("of no launch")
        self._state(self._launch).transitions.add(decode_transition(line))

    def _state(self, application: str) -> LineageState:
        state = self._states.get(application)
        if state is None:
            state = self._states[application] = LineageState()
        return state

    def parts(self) -> Iterator[Part]:
        for application, state in self._states.items():
            parent = state.parents.get(application)
            yield Part(
                self._path, application, None if parent is None else parent.run_id, encode_state(state), None, None
            )
        yield Part(self._path, None, None, None, self._counts.read, self._counts.set_aside)
