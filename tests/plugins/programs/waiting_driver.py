"""Stands in for a driver: writes the events of one that was killed, and waits until it is, or those of one that ended.

Called as ``spark-submit``; the application's arguments are both files of events, and the one that says to end. Beside
that, ``.released`` says to end after all, and ``.fails`` to fail, once.
"""

import sys
import time
from pathlib import Path

killed, ended, released = map(Path, sys.argv[-3:])
conf = dict(argument.split("=", 1) for argument in sys.argv if argument.startswith("spark."))
prefix = "spark.openlineage.transport."
location = Path(conf.get(f"{prefix}transports.spark_lineage.location") or conf[f"{prefix}location"])
has_ended = released.exists()
location.write_bytes((ended if has_ended else killed).read_bytes())
Path(f"{released}.written").touch()
failing = Path(f"{released}.fails")
if failing.exists():
    failing.unlink()
    released.touch()
    sys.exit(1)
while not (has_ended or Path(f"{released}.released").exists()):
    time.sleep(0.1)
