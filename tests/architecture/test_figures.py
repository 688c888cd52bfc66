"""The provider grows only by a commit that says so."""

from __future__ import annotations

from figures import too_big


def test_no_figure_is_above_the_allowed_one() -> None:
    assert too_big() == []
