"""Closes what standard input names, as a JSON list: lost tries, DAG runs without an end, events that wait."""

from __future__ import annotations

import sys

import msgspec

from spark_lineage.launch.lost_try import LostTry


def main() -> None:
    """Close one after the other; trouble with one is logged, and leaves the others alone."""
    from spark_lineage.recover.closing import guard
    from spark_lineage.recover.dag_runs import DagRunEnd, send_dag_run_end
    from spark_lineage.recover.in_server import close
    from spark_lineage.recover.left_in_outbox import LeftInOutbox

    for lost in msgspec.json.decode(sys.stdin.buffer.read(), type=list[LostTry | DagRunEnd | LeftInOutbox]):
        with guard("The end of a try, or of a DAG run, is not told"):
            match lost:
                case LostTry():
                    close(lost)
                case DagRunEnd():
                    send_dag_run_end(lost)
                case LeftInOutbox():
                    lost.send()


if __name__ == "__main__":
    main()
