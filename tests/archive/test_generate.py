"""The generator of benchmarks: what it makes is as real as the fixtures, and counted right."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from generate import Shares, Summary, generate
from recorded import EVENTS, programs

from spark_lineage.launch.launch import read_transitions
from spark_lineage.launch.line import LineDecoder, LineError
from spark_lineage.merge.state import LineageState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

LINES = 12_000
SHARES = Shares(failed=0.2, torn=0.01, orphans=0.1, several=0.2, central=0.3, gzip=0.2, zstd=0.2)
NAMES = {
    b"run_id": b"01890a5d-ac96-7dde-8a63-0123456789ab",
    b"root_run_id": b"01890a5d-ac96-7dde-8a63-0123456789ff",
    b"application_run_id": b"01890a5d-ac96-7dde-8a63-012345678900",
    b"job": b"dag1.task1",
    b"root_job": b"dag1",
    b"application_name": b"daily_load",
}
CHANCE = random.Random(0)  # noqa: S311 - what it makes is no secret
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r'"eventTime":"([^"]+)"')
APPLICATION_ID = re.compile(r'"local-\d+"')
APPLICATION = re.compile(r'"appName":"([^"]+)"|"job":\{"namespace":"lab","name":"([^".]+)')


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    directory = tmp_path_factory.mktemp("archive")
    return directory, generate(directory, LINES, seed=1, days=3, dags=20, areas=8, giant=2000, shares=SHARES)


def files(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def plain(name: str, content: bytes) -> bytes:
    if name.endswith(".gz"):
        return gzip.decompress(content)
    if name.endswith(".zst"):
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read()
    return content


def lines(directory: Path) -> dict[str, list[bytes]]:
    return {
        name: plain(name, content).splitlines()
        for name, content in files(directory).items()
        if not name.endswith(".jsonl")
    }


def decoded(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    events = []
    decode = LineDecoder().decode
    for line in lines:
        with suppress(LineError):
            decode(line)
            events.append(json.loads(line))
    return events


def is_application(event: Mapping[str, Any]) -> bool:
    return event["job"]["facets"]["jobType"]["jobType"] == "APPLICATION"


def masked(text: str) -> list[str]:
    """The lines with run ids by number of appearance, times after the first, and without the names of the run."""
    names = sorted({name for match in APPLICATION.findall(text) for name in match if name}, key=len, reverse=True)
    for name in names:
        text = re.sub(rf'([nN]ame":"){re.escape(name)}(?=[".])', r"\1APPLICATION", text)
    numbers: dict[str, str] = {}
    text = UUID.sub(lambda match: numbers.setdefault(match[0], f"RUN{len(numbers)}"), text)
    moments = [datetime.fromisoformat(moment) for moment in TIME.findall(text)]
    text = APPLICATION_ID.sub('"APPLICATION_ID"', TIME.sub("", text))
    return [f"{moment - moments[0]} {line}" for moment, line in zip(moments, text.splitlines(), strict=True)]


@pytest.mark.parametrize("name", programs())
def test_a_program_runs_again_as_it_was_recorded_but_for_its_names(name: str) -> None:
    program = programs()[name]
    made = list(program.events(NAMES, [4], 1_767_225_600_000, CHANCE))
    recorded = (EVENTS / f"{name}.ndjson").read_text()
    if program.is_killed:
        whole = recorded.splitlines(keepends=True)
        assert len(made) == len(whole)
        made.pop()
        recorded = "".join(whole[:-1])
    text = b"".join(made).decode()
    assert not {*UUID.findall(text)} & ({*UUID.findall(recorded)} - {value.decode() for value in NAMES.values()})
    assert masked(text.replace("/data/lab/area_004", "/data/lab")) == masked(recorded)


def test_the_same_arguments_make_the_same_bytes_and_another_seed_adds_to_them(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    summary = generate(one, 3000, seed=7, shares=SHARES)
    assert generate(other, 3000, seed=7, shares=SHARES) == summary
    first = files(one)
    assert files(other) == first
    generate(other, 3000, seed=8, shares=SHARES)
    grown = files(other)
    assert {name: grown[name] for name in first} == first
    assert len(grown) > len(first)


def test_what_it_counts_is_there(archive: tuple[Path, Summary]) -> None:
    directory, summary = archive
    found = lines(directory)
    every = [line for content in found.values() for line in content]
    state = LineageState()
    decode = LineDecoder().decode
    reasons: Counter[str] = Counter()
    for line in every:
        try:
            state.add(*decode(line))
        except LineError as error:
            reasons[error.reason] += 1
    assert summary.lines == len(every) == LINES + 2000
    assert summary.files == len(found)
    assert reasons == {"not JSON": summary.torn}
    assert 0.005 * LINES < summary.torn < 0.02 * LINES
    contents = files(directory)
    assert summary.bytes == sum(len(plain(name, contents[name])) for name in found)
    suffixes = Counter(name.rpartition(".")[2] for name in found)
    assert {*suffixes} == {"ndjson", "gz", "zst"}
    # Those whose first and last line are torn are not known by their parents.
    assert 0.95 * summary.tries < len({parent.run_id for parent in state.parents.values()}) <= summary.tries
    assert 0.95 * summary.applications < len({run_id for run_id, _ in state.applications}) <= summary.applications
    assert 0 < summary.orphans < summary.applications - summary.tries


def test_failed_tries_have_a_failed_driver_and_a_second_try(archive: tuple[Path, Summary]) -> None:
    directory, summary = archive
    ends = defaultdict(set)
    tries = defaultdict(set)
    for launch in directory.glob("dag_*/*/*/-1/*"):
        number = int(launch.name.partition("-")[0])
        tries[launch.parent].add(number)
        transitions = list(read_transitions(launch))
        if transitions:
            ends[launch.parent, number].add(transitions[-1].new_status)
    assert {*map(frozenset, ends.values())} == {frozenset({"FAILED"}), frozenset({"FINISHED"})}
    failed = [key for key, statuses in ends.items() if "FAILED" in statuses]
    assert len(failed) == summary.failed > 10
    assert {number for _, number in failed} == {1}
    # Some second tries are in the central files.
    assert sum(2 in tries[task] for task, _ in failed) > 0.5 * len(failed)


def test_an_application_without_parent_names_none(archive: tuple[Path, Summary]) -> None:
    directory, summary = archive
    adhoc = [
        event
        for content in lines(directory).values()
        for event in decoded(content)
        if event["job"]["name"].startswith("adhoc")
    ]
    applications = [event for event in adhoc if is_application(event)]
    assert all("parent" not in event["run"]["facets"] for event in applications)
    ids = {event["run"]["runId"] for event in applications}
    assert len(ids) >= 0.95 * summary.orphans
    parents = [event["run"]["facets"]["parent"] for event in adhoc if not is_application(event)]
    assert parents
    assert not any("root" in parent for parent in parents)


def test_applications_share_files_and_are_in_several(archive: tuple[Path, Summary]) -> None:
    directory, _ = archive
    where = defaultdict(set)
    inside = defaultdict(set)
    for name, content in lines(directory).items():
        for event in decoded(content):
            if is_application(event):
                where[event["run"]["runId"]].add(name)
                inside[name].add(event["run"]["runId"])
    assert max(map(len, where.values())) == 2
    assert max(map(len, inside.values())) == 20
    assert sum(len(applications) == 1 for applications in inside.values()) > 0.5 * len(inside)


def test_dags_share_the_datasets_of_a_bounded_pool(archive: tuple[Path, Summary]) -> None:
    directory, _ = archive
    read: dict[str, set[str]] = defaultdict(set)
    written: dict[str, set[str]] = defaultdict(set)
    for content in lines(directory).values():
        for event in decoded(content):
            dag = event["job"]["name"][:7]
            for sides, kind in ((read, "inputs"), (written, "outputs")):
                for dataset in event[kind]:
                    sides[dataset["name"]].add(dag)
    areas = {match for name in (*read, *written) for match in re.findall(r"area_\d+", name)}
    assert len(areas) == 8
    assert max(map(len, read.values())) > 5
    # One task's output is another one's input.
    assert any(read[name] - written[name] for name in {*read} & {*written})


def test_the_giant_is_one_application_of_many_datasets(archive: tuple[Path, Summary]) -> None:
    directory, _ = archive
    content = (directory / "giant-1.ndjson").read_bytes().splitlines()
    assert len(content) == 2000
    events = decoded(content)
    assert {event["job"]["name"].partition(".")[0] for event in events} == {"giant_load"}
    assert len({event["run"]["runId"] for event in events}) > 400
    assert len({dataset["name"] for event in events for dataset in event["inputs"]}) == 3
    assert sum(is_application(event) for event in events) == 1


def test_a_flat_archive_is_one_directory_of_files_of_several_applications(tmp_path: Path) -> None:
    summary = generate(tmp_path, 3000, is_flat=True)
    assert summary.failed == 0
    assert all("/" not in name and name.startswith("drivers-0-") for name in files(tmp_path))
    assert sum(map(len, lines(tmp_path).values())) == 3000
