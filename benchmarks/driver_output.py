"""Measures what lineage adds to each line of a driver's output; prints one line a figure, ``name ratio``.

The Spark provider's own hook reads the lines and logs them, once as it is (the peer) and once with ours around it, by
turns. The log goes to the standard library's logger, which writes to a file.

- ``plain_vs_stock``, ``spark_vs_stock``, ``assignment_vs_stock``: time of a line of words, of Spark's log, and of
  ``name=value`` pairs, divided by that of the bare hook (goal: at most 2)
- ``key_vs_stock``: the same of lines that name keys, but none of a secret
- ``secret_vs_stock``: the same of lines with a secret, which must be read closely
- ``megabyte_vs_stock``, ``secret_megabyte_vs_stock``: the same of lines of almost one megabyte of ``name=value`` pairs
  (longer ones are cut), without a secret and with one
- ``event_vs_json``: time to redact an event of one megabyte, divided by that to read it from JSON and write it again

``--details`` prints the microseconds of a line too.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

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

    from spark_lineage.submit.hook import HookAdapter

    hook = SparkSubmitHook()
    logger = logging.getLogger(f"driver-output-{is_ours}")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.FileHandler(folder / f"{is_ours}.log"))
    hook._log = logger  # type: ignore[assignment]  # noqa: SLF001 - as Airflow 2 has it
    if is_ours:
        HookAdapter(
            hook,
            before_submit=lambda: None,
            is_killed=lambda: False,
            on_started=lambda _: None,
            on_learnt=lambda: None,
            on_external_id=lambda _: None,
            has_finished=lambda: False,
        )
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        hook._submit_sp = process  # noqa: SLF001
    return hook._process_spark_submit_log  # noqa: SLF001


def seconds(process: Callable[[Iterator[str]], None], lines: Iterable[str]) -> float:
    """Return how long the lines take."""
    start = time.perf_counter()
    process(iter(lines))
    return time.perf_counter() - start


def event_vs_json(rounds: int) -> float:
    """Return how long an event of a megabyte takes to redact, as a ratio."""
    from spark_lineage.secrets.redacted_event import redact_event

    fields = {
        f"column_{each}": {"inputFields": [{"namespace": "file", "name": f"/in/{each}", "field": f"in_{each}"}]}
        for each in range(10_000)
    }
    event = {"outputs": [{"namespace": "file", "name": "/out", "facets": {"columnLineage": {"fields": fields}}}]}

    def least(work: Callable[[], object]) -> float:
        times: list[float] = []
        for _ in range(rounds):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    return least(lambda: redact_event(event)) / least(lambda: json.loads(json.dumps(event)))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=500, help="in each round; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--details", action="store_true", help="also print microseconds a line")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchmark-output-") as name:
        folder = Path(name)
        os.environ["AIRFLOW_HOME"] = str(folder)
        os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = '{"conn_type": "spark", "host": "local[2]"}'
        stock, ours = processing(folder, is_ours=False), processing(folder, is_ours=True)
        every = {kind: [line.format(n) for n in range(arguments.lines)] for kind, line in LINES.items()}
        line = LINES["assignment"].format(17).rstrip() + " "
        many = line * (MEGABYTE // len(line) - 1)
        every["megabyte"] = [f"{many}\n"] * 2
        every["secret_megabyte"] = [f"{many} password=hunter2\n"] * 2
        for kind, lines in every.items():
            pairs = [(seconds(stock, lines), seconds(ours, lines)) for _ in range(arguments.rounds)]
            print(f"{kind}_vs_stock {min(own for _, own in pairs) / min(bare for bare, _ in pairs):.2f}")
            if arguments.details:
                bare, own = (min(each) / len(lines) * 1e6 for each in zip(*pairs, strict=True))
                print(f"# {kind}: {bare:.1f} and {own:.1f} microseconds a line")
        print(f"event_vs_json {event_vs_json(max(1, arguments.rounds // 4)):.2f}")


if __name__ == "__main__":
    main()
