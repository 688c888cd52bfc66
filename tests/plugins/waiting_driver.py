"""A connection whose driver is no Spark: it writes what a real one wrote, as ``programs/waiting_driver.py`` says."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "waiting_driver.py"
EVENTS = Path(__file__).parents[1] / "fixtures" / "events"
RECORDED = [str(EVENTS / "gkillmid_414.ndjson"), str(EVENTS / "a_414.ndjson")]


def waiting_connection(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return what the connection ``spark_waiting`` adds to an environment; its ``spark3-submit`` is in the folder."""
    driver = folder / "spark3-submit"
    driver.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {PROGRAM} "$@"\n')
    driver.chmod(0o755)
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"spark-binary": driver.name}}
    return {
        "PATH": os.pathsep.join([env["PATH"], str(folder)]),
        "AIRFLOW_CONN_SPARK_WAITING": json.dumps(connection),
    }
