"""The model of Marquez's pages, against what a real Marquez 0.51.1 showed after each event.

The answers were recorded by ``python -m lineage_backends.marquez_probe``, which compares with a Marquez of yours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lineage_backends.marquez_pages import MarquezPages, UnknownRuleError
from lineage_backends.marquez_probe import shown_by_model
from lineage_backends.marquez_sequences import SEQUENCES, Names, Said

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "fixtures" / "marquez_pages.json").read_text())


@pytest.mark.parametrize("name", SEQUENCES)
def test_model_shows_what_marquez_showed_after_each_event(name: str) -> None:
    names, pages, shown = Names("proof"), MarquezPages(), []
    for number, said in enumerate(SEQUENCES[name]):
        pages.take(said.event(names, number))
        shown.append(shown_by_model(pages, names))
    assert shown == RECORDED[name]


def test_every_recorded_sequence_is_replayed() -> None:
    assert set(RECORDED) == set(SEQUENCES)


def test_run_that_is_known_as_one_of_another_job_is_no_parent() -> None:
    names, pages = Names("proof"), MarquezPages()
    pages.take(Said.read("START d1 job=other").event(names, 0))
    with pytest.raises(UnknownRuleError, match="named as one of dag"):
        pages.take(Said.read("START t1^d1").event(names, 1))
