"""The arguments of the job, which the command, ``spark-submit`` and the operator give alike."""

from __future__ import annotations

import argparse
from typing import get_args

from spark_lineage.archive.pointer import TableFormat
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SRC",
        help="lineage file, directory or glob, as a path or a URI of Spark's file systems",
    )
    parser.add_argument("--out", required=True, metavar="DST", help="directory of the output, as a path or a URI")
    parser.add_argument(
        "--format", choices=get_args(TableFormat), default="parquet", help="of the tables; default: %(default)s"
    )
    parser.add_argument("--full", action="store_true", help="read every file, also what an earlier run has read")
    parser.add_argument(
        "--master", metavar="URL", help="where Spark runs; default: that of spark-submit, else local[*]"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark property; may be repeated"
    )
    parser.add_argument(
        "--naming",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="how datasets are named, as in [spark_lineage]: hostnamePattern.prod=10\\.1\\..*; may be repeated",
    )
    parser.add_argument(
        "--max-event-bytes",
        type=int,
        default=DEFAULT_LIMIT_BYTES,
        metavar="N",
        help="above this an event loses detail, never a dataset; default: %(default)s",
    )
