"""Closes the lost tries that standard input names, as a JSON list of ``LostTry``."""

from __future__ import annotations

import sys

import msgspec

from spark_lineage.recovery.lost_try import LostTry


def main() -> None:
    """Close one after the other; trouble with one is logged, and leaves the others alone."""
    from spark_lineage.recovery.closing import tolerating
    from spark_lineage.recovery.in_server import close

    for lost in msgspec.json.decode(sys.stdin.buffer.read(), type=list[LostTry]):
        with tolerating("The end of a try is not told"):
            close(lost)


if __name__ == "__main__":
    main()
