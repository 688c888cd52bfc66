"""Exports the programs and their truths as a producer of OpenLineage's compatibility-tests.

``python tests/truth/scenario.py DIR`` writes ``DIR/producer/spark_truth`` with a scenario for each program: its file,
its truth, and the events that their validator (``scripts/validate_ol_events.py``) expects. ``--events DIR`` writes the
merged event of each recording as well, as the validator reads it.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from truth_file import WHOLE, Truth, jobs, read_truth
from truth_recording import merged_recording, recordings

COMPONENT = "spark_truth"
_COLUMNS = ("direct", "indirect")
_WORK = Path("/work")
_VERSIONS = {"openlineage_versions": {"min": "1.0.0"}}
_README = """# Spark programs with a truth

One event has the lineage of a whole program. Each scenario has the program (`test/`), what it reads, and what a
perfect event has. `runner/` is empty: any tool that runs Spark programs and sends one event about each can be tested.
"""
_RUN = f"""#!/bin/bash
# Usage: run_{COMPONENT}_tests.sh EVENTS SPECS OPENLINEAGE_VERSION SPARK_VERSION REPORT
cd "$(dirname "$0")/../.." || exit
python scripts/validate_ol_events.py --component={COMPONENT} --producer_dir=producer --event_base_dir="$1" \\
    --spec_base_dir="$2" --openlineage_version="$3" --component_version="$4" --target="$5"
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the scenarios of all programs, and the events of the recordings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--events", type=Path, metavar="DIR", help="write the events of the recordings to DIR/PROGRAM")
    asked = parser.parse_args(arguments)
    producer = asked.directory / "producer" / COMPONENT
    (producer / "runner").mkdir(parents=True, exist_ok=True)
    (producer / "runner" / ".gitkeep").touch()
    (producer / "README.md").write_text(_README)
    (producer / "maintainers.json").write_text("[]\n")
    (producer / f"run_{COMPONENT}_tests.sh").write_text(_RUN)
    for job in jobs():
        export(read_truth(job), producer / "scenarios" / job)
    if asked.events:
        with redirect_stderr(io.StringIO()):
            for job, version in {job: version for version, job in recordings()}.items():
                event = merged_recording(job, version)[1]
                (asked.events / job).mkdir(parents=True, exist_ok=True)
                (asked.events / job / "event.json").write_text(json.dumps(event))


def export(truth: Truth, scenario: Path) -> None:
    """Write the scenario of one program."""
    for name in ("events", "test"):
        (scenario / name).mkdir(parents=True, exist_ok=True)
    for path in (truth.program, truth.program.with_suffix(".toml")):
        shutil.copy(path, scenario / "test")
    if truth.before:
        shutil.copy(truth.program.parent / truth.before, scenario / "test")
    tests = []
    for facet, event in expected_events(truth).items():
        (scenario / "events" / f"{facet}.json").write_text(json.dumps(event, indent=2) + "\n")
        tags = {"facets": [facet]}
        tests.append({"name": f"{facet}_test", "path": f"events/{facet}.json", "tags": tags})
    (scenario / "config.json").write_text(json.dumps(_VERSIONS | {"tests": tests}, indent=2) + "\n")
    (scenario / "maintainers.json").write_text("[]\n")
    (scenario / "scenario.md").write_text(f"# {truth.job}\n\n{truth.about}\n")


def expected_events(truth: Truth) -> dict[str, dict[str, Any]]:
    """Return what the validator expects of an event, by facet; the order of lists is that of names.

    The validator compares lists by position, and the values of templates by expressions. Only the state is expected
    where an event may lack a dataset or name it twice; facts that an event may lack and odd columns are not expected.
    """
    job = {"namespace": "{{ match(result, '.*') }}", "name": "{{ match(result, '.*') }}"}
    (state,) = truth.facts["state"]
    common: dict[str, Any] = {"eventType": state, "job": job}
    lacking = {each["measure"] for each in truth.without_evidence}
    if lacking & {"inputs", "outputs"} or any(isinstance(truth.datasets[alias], list) for alias in truth.inputs):
        return {"run_event": common}
    datasets = _datasets(truth)
    outputs = _sorted(truth.outputs, truth)
    common["inputs"] = [datasets[alias] for alias in _sorted(truth.inputs, truth)]

    def expecting(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        return common | {"outputs": [datasets[alias] | parts.get(alias, {}) for alias in outputs]}

    events = {"run_event": expecting({})}
    rows = {alias: told["rows"] for alias, told in truth.outputs.items() if "rows" in told}
    if rows and "rows" not in lacking:
        statistics = {alias: {"outputStatistics": {"rowCount": number}} for alias, number in rows.items()}
        events["outputStatistics"] = expecting({alias: {"outputFacets": each} for alias, each in statistics.items()})
    lineage = {alias: each for alias in outputs if (each := _column_lineage(alias, truth, datasets))}
    if lineage and not lacking and not any("{{" in fact for kind in _COLUMNS for fact in truth.facts[kind]):
        events["columnLineage"] = expecting({alias: {"facets": {"columnLineage": lineage[alias]}} for alias in lineage})
    return events


def _column_lineage(alias: str, truth: Truth, datasets: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the columns of an output with their sources, each with all its kinds."""
    kinds: dict[str, dict[str, set[str]]] = {}
    for kind in _COLUMNS:
        for column, sources in truth.outputs[alias].get(kind, {}).items():
            for source in sources:
                kinds.setdefault(column, {}).setdefault(source, set()).add(kind.upper())

    def place(source: str) -> tuple[Any, str]:
        table, _, column = source.partition(".")
        return _place(table, truth), column

    found = {
        column: [
            datasets[source.partition(".")[0]]
            | {"field": source.partition(".")[2], "transformations": _kinds(sources[source])}
            for source in sorted(sources, key=place)
        ]
        for column, sources in kinds.items()
    }
    whole = found.pop(WHOLE, [])
    fields = {column: {"inputFields": sources} for column, sources in found.items()}
    return ({"fields": fields} if fields else {}) | ({"dataset": whole} if whole else {})


def _kinds(kinds: set[str]) -> str:
    """Return a template that finds each of the kinds in the text of a list of transformations."""
    found = "".join(f"(?=.*'{kind}')" for kind in sorted(kinds))
    return f'{{{{ match(result | string, "{found}.*") }}}}'


def _datasets(truth: Truth) -> dict[str, dict[str, str]]:
    """Return namespace and name of each alias as templates: the directory of a run is any."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, alias in truth.names(_WORK).items():
        found.setdefault(alias, []).append(name)
    return {
        alias: {
            "namespace": _template({namespace for namespace, _ in names}),
            "name": _template({name for _, name in names}),
        }
        for alias, names in found.items()
    }


def _template(names: set[str]) -> str:
    """Return what matches each of the names; a character that a template or an expression reads is any character."""
    patterns = [".*".join(re.sub(r"[^\w/=-]", ".", part) for part in name.split(str(_WORK))) for name in sorted(names)]
    return f"{{{{ match(result, '{'|'.join(patterns)}') }}}}"


def _place(alias: str, truth: Truth) -> Any:
    return next(name for name, each in truth.names(_WORK).items() if each == alias)


def _sorted(aliases: Iterator[str] | Sequence[str] | Mapping[str, Any], truth: Truth) -> list[str]:
    return sorted(aliases, key=lambda alias: _place(alias, truth))


if __name__ == "__main__":
    main()
