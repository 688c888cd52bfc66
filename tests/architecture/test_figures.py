"""The package grows only by a commit that says so."""

from __future__ import annotations

from figures import ADD_ONS, CORE, lines, too_big


def test_no_figure_is_above_its_limit() -> None:
    assert too_big() == []


def test_each_package_is_of_the_core_or_an_add_on() -> None:
    assert sorted(CORE | ADD_ONS) == sorted(lines())
    assert not CORE & ADD_ONS
