"""A file that is read in pieces has the lines of the whole, wherever it is cut."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

import pytest

from spark_lineage.archive import fold
from spark_lineage.archive.fold import Piece
from spark_lineage.launch.line import LineError
from spark_lineage.submission.lineage_files import lines

if TYPE_CHECKING:
    from pathlib import Path

MARK = codecs.BOM_UTF8


@pytest.mark.parametrize("chunk_bytes", [3, 7, 1024])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"one",
        b"one\n",
        b"\n\none\n\n",
        b"one\ntwo\n\nthree",
        b"a line\r\n" * 3,
        MARK + b"one\n" + MARK + b"2",
    ],
)
def test_cut_anywhere(content: bytes, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(content)
    with path.open("rb") as stream:
        whole = list(lines(stream, path.name))
    monkeypatch.setattr(fold, "_CHUNK_BYTES", chunk_bytes)
    for size in range(len(MARK), len(content) + len(MARK)):
        ends = range(0, max(len(content), 1), size)
        cut = [Piece(f"file:{path}", start, min(start + size, len(content))) for start in ends]
        assert [line for piece in cut for line in piece.lines()] == whole


def test_what_came_after_the_listing_is_left_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(b"one\ntwo\n")
    piece = Piece(f"file:{path}", 0, 8)
    path.write_bytes(b"one\ntwo\nthree\n")
    assert list(piece.lines()) == [b"one", b"two"]


def test_an_oversized_line_is_told_by_the_piece_that_it_begins_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_lineage.launch.line.MAX_LINE_BYTES", 10)
    monkeypatch.setattr(fold, "_CHUNK_BYTES", 4)
    path = tmp_path / "events.ndjson"
    path.write_bytes(b"one\n" + b"x" * 20 + b"\ntwo\n")
    first, second, third = (list(Piece(f"file:{path}", *span).lines()) for span in ((0, 4), (4, 12), (12, 29)))
    assert (first, third) == ([b"one"], [b"two"])
    (oversized,) = second
    assert isinstance(oversized, LineError)
    assert oversized.reason == "oversized"
