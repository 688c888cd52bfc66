"""Makes a directory of Spark's event logs, of any number, out of the real ones in ``tests/fixtures/event_logs``.

Each is one of them under an application id, times, a name and paths of its own. They are as a History Server finds
them: in one file or in parts, plain or compressed, some still being written, some of two attempts of one application,
and some in a codec that is not read. The same arguments make the same logs, to the byte.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import zstandard

from spark_lineage.plans.event_log_files import GrowingEventLog, find_event_logs

LOGS = Path(__file__).parents[1] / "tests" / "fixtures" / "event_logs"
MINUTE = 60_000
# Of twenty logs; the others are one file, every second one compressed.
ROLLING, GROWING, TWO_ATTEMPTS, UNREADABLE = {0, 1}, {2}, {3, 9}, {19}

_APPLICATION = re.compile(rb'("App Name":")[^"]*(","App ID":")[^"]*(")')
_TIME = re.compile(rb'("(?:Timestamp|time|Submission Time|Completion Time)":)(\d{13})\b')
_RUN_ID = re.compile(rb'("spark\.openlineage\.\w*RunId":")[0-9a-f]{8}')
_HOME = b"/data/lab"


def programs() -> list[list[bytes]]:
    """Return the lines of each recorded log."""
    logs = [log for log in find_event_logs(LOGS) if log.suffix != ".md"]
    return [[line for _, line in GrowingEventLog(log).finish() if isinstance(line, bytes)] for log in logs]


def generate(directory: Path, count: int) -> None:
    """Write the logs of ``count`` applications into a directory."""
    directory.mkdir(parents=True)
    its_programs = programs()
    for number in range(count):
        application = f"application_1795000000000_{number:05}"
        program = its_programs[(number + number // 20) % len(its_programs)]
        lines = [_as_of(line, application, number) for line in program]
        if number % 20 in TWO_ATTEMPTS:
            # The first one was killed halfway; the second one began a day later.
            _write(directory / f"{application}_1", _attempt(lines[: len(lines) // 2], 1))
            lines = _attempt([_later(line, 24 * 60) for line in lines], 2)
            _write(directory / f"{application}_2", lines)
        elif number % 20 in ROLLING:
            rolling = directory / f"eventlog_v2_{application}"
            rolling.mkdir()
            rolling.joinpath(f"appstatus_{application}").touch()
            middle = len(lines) // 2
            for part, some in enumerate((lines[:middle], lines[middle:]), 1):
                _write(rolling / f"events_{part}_{application}.zstd", some)
        elif number % 20 in GROWING:
            _write(directory / f"{application}.inprogress", lines[: len(lines) // 2])
        else:
            codec = ".lz4" if number % 20 in UNREADABLE else ".zstd" if number % 2 else ""
            _write(directory / (application + codec), lines)


def _as_of(line: bytes, application: str, number: int) -> bytes:
    """Return a line as that of another application."""
    line = _APPLICATION.sub(rb"\g<1>load_%03d\g<2>%b\g<3>" % (number % 100, application.encode()), line)
    line = _RUN_ID.sub(rb"\g<1>%08x" % number, line)
    return _later(line.replace(_HOME, b"/data/area_%02d" % (number % 50)), number)


def _later(line: bytes, minutes: int) -> bytes:
    return _TIME.sub(lambda found: b"%b%d" % (found[1], int(found[2]) + minutes * MINUTE), line)


def _attempt(lines: list[bytes], number: int) -> list[bytes]:
    return [
        line[:-1] + b',"App Attempt ID":"%d"}' % number if b"SparkListenerApplicationStart" in line[:60] else line
        for line in lines
    ]


def _write(file: Path, lines: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    file.write_bytes(zstandard.compress(content, 1) if file.suffix == ".zstd" else content)


def main() -> None:
    """Write the logs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="which is not there yet")
    parser.add_argument("--applications", type=int, default=10_000, help="default: %(default)s")
    arguments = parser.parse_args()
    generate(arguments.directory, arguments.applications)


if __name__ == "__main__":
    main()
