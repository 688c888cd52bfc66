"""How many examples the fuzz tests try: a few that are always the same, or as many as one asks for, at random."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_ASKED_FOR = int(os.environ.get("SPARK_LINEAGE_FUZZ_EXAMPLES", "0"))


def fuzzed(examples: int = 100) -> settings:
    """Return the settings of a test: so many examples, or ``SPARK_LINEAGE_FUZZ_EXAMPLES`` times as many."""
    return settings(
        max_examples=examples * max(1, _ASKED_FOR),
        derandomize=not _ASKED_FOR,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
