"""Tests where events go, for *Test connection* and the doctor: contacts the backend, and writes nothing there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from spark_lineage.deliver.connections import members_of
from spark_lineage.deliver.sender import sender_of


def probe(config: Mapping[str, Any]) -> tuple[bool, str]:
    """Say whether events would arrive, and what was found; raises nothing."""
    if members := members_of(config):
        results = {name: probe(member) for name, member in members.items()}
        texts = (f"{name}: {'' if is_good else 'NOT GOOD: '}{text}" for name, (is_good, text) in results.items())
        return all(is_good for is_good, _ in results.values()), "; ".join(texts)
    try:
        with closing(sender_of(config)) as sender:
            return sender.probe()
    except Exception as error:
        return False, str(error) or type(error).__name__
