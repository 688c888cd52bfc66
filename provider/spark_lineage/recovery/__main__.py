"""Closes what standard input names, as a JSON list: tries that were lost, DAG runs whose end is missing."""

from __future__ import annotations

import sys

import msgspec

from spark_lineage.recovery.lost_try import LostTry


def main() -> None:
    """Close one after the other; trouble with one is logged, and leaves the others alone."""
    from spark_lineage.recovery.closing import tolerating
    from spark_lineage.recovery.dag_runs import DagRunEnd, send_dag_run_end
    from spark_lineage.recovery.in_server import close

    for lost in msgspec.json.decode(sys.stdin.buffer.read(), type=list[LostTry | DagRunEnd]):
        with tolerating("The end of a try, or of a DAG run, is not told"):
            if isinstance(lost, LostTry):
                close(lost)
            else:
                send_dag_run_end(lost)


if __name__ == "__main__":
    main()
