"""Measures what lineage adds to each line of a driver's output; prints one line a figure, as ``pairs.py`` does.

The Spark provider's own hook reads the lines and logs them, once as it is (the peer) and once with ours around it. The
log goes to the standard library's logger, which writes to a file.

- ``plain_vs_stock``, ``spark_vs_stock``, ``assignment_vs_stock``: time of a line of words, of Spark's log, and of
  ``name=value`` pairs, divided by that of the bare hook (goal: at most 2)
- ``key_vs_stock``: the same of lines that name keys, but none of a secret
- ``secret_vs_stock``: the same of lines with a secret, which must be read closely
- ``megabyte_vs_stock``, ``secret_megabyte_vs_stock``: the same of lines of almost one megabyte of ``name=value`` pairs
  (longer ones are cut), without a secret and with one
- ``event_vs_json``: time to redact an event of one megabyte, divided by that to read it from JSON and write it again
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pairs import Taken, by_turns, parser, timed

LINES = {
    "plain": "Read {} rows of the orders of yesterday, and wrote them to the warehouse\n",
    "spark": "26/01/01 12:00:00 INFO TaskSetManager: Finished task {}.0 in stage 1.0 (TID 7) in 23 ms on node (1/8)\n",
    "assignment": "row={} offset=4711 partition=3 status=ok user=bob\n",
    "key": "key={} value=4711 monkey=3\n",
    "secret": "row={} offset=4711 password=hunter2 status=ok\n",
}
MEGABYTE = 999_000


def processing(folder: Path, *, is_ours: bool) -> Callable[[Iterator[str]], None]:
    """Return what reads the lines of a driver: the hook's own method, or the one that stands in its place."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    from spark_lineage.adapters.spark_submit import SparkSubmitAdapter

    hook = SparkSubmitHook()
    logger = logging.getLogger(f"driver-output-{is_ours}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.FileHandler(folder / f"{is_ours}.log"))
    hook._log = logger  # type: ignore[assignment]  # noqa: SLF001 - as Airflow 2 has it
    if is_ours:
        SparkSubmitAdapter(hook, before_submit=lambda: None, is_killed=lambda: False)
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        hook._submit_sp = process  # noqa: SLF001
    return hook._process_spark_submit_log  # noqa: SLF001


def large_event() -> dict[str, Any]:
    """Return an event of a megabyte."""
    fields = {
        f"column_{each}": {"inputFields": [{"namespace": "file", "name": f"/in/{each}", "field": f"in_{each}"}]}
        for each in range(10_000)
    }
    return {"outputs": [{"namespace": "file", "name": "/out", "facets": {"columnLineage": {"fields": fields}}}]}


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=20)
    asking.add_argument("--lines", type=int, default=500, help="in each round; default: %(default)s")
    asked = asking.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchmark-output-") as name:
        folder = Path(name)
        os.environ["AIRFLOW_HOME"] = str(folder)
        os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = '{"conn_type": "spark", "host": "local[2]"}'
        from spark_lineage.secrets.redaction import redact_event

        hooks = {"stock": processing(folder, is_ours=False), "ours": processing(folder, is_ours=True)}
        every = {kind: [line.format(n) for n in range(asked.lines)] for kind, line in LINES.items()}
        line = LINES["assignment"].format(17).rstrip() + " "
        many = line * (MEGABYTE // len(line) - 1)
        every["megabyte"] = [f"{many}\n"] * 2
        every["secret_megabyte"] = [f"{many} password=hunter2\n"] * 2

        def reading(process: Callable[[Iterator[str]], None], lines: list[str]) -> Callable[[], Taken]:
            return lambda: timed(lambda: process(iter(lines)))

        event = large_event()
        runs = {f"{kind}_{name}": reading(hooks[name], lines) for kind, lines in every.items() for name in hooks}
        runs["event"] = lambda: timed(redact_event, event)
        runs["json"] = lambda: timed(lambda: json.loads(json.dumps(event)))
        found = by_turns(runs, asked)
    for kind in every:
        found.compare(f"{kind}_vs_stock", f"{kind}_ours", f"{kind}_stock")
    found.compare("event_vs_json", "event", "json")
    found.show_numbers()


if __name__ == "__main__":
    main()
