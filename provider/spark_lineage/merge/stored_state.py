"""Writes a state as bytes and reads it back, so that shards can be folded in one place and merged in another.

What runs share in memory is written once, and shared again when it is read: the bytes, too, grow with distinct runs and
datasets alone.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import Application, ParentRun
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import LineageState, RunContent, RunState
from spark_lineage.merge.transition import StatusTransition

FORMAT = 1
"""What is to be counted up when a state of the same events is written in other bytes, or says something else."""


class StateFormatError(ValueError):
    """Bytes that are no state, or that of another version of this package; the text says which."""


class _Content(Struct, array_like=True, gc=False):
    """A ``RunContent``, whose datasets are places in ``_State.datasets``."""

    parent_run_id: str
    job_type: str | None
    job_namespace: str
    job_name: str
    is_streaming: bool
    inputs: int
    outputs: int


class _State(Struct, array_like=True):
    """All of a state; a run is (run id, first, last, seen, place in ``contents``)."""

    format: int
    datasets: list[tuple[Observed, ...]]
    contents: list[_Content]
    runs: list[tuple[str, float, float, int, int]]
    applications: list[Application]
    parents: dict[str, ParentRun]
    executions: list[Execution]
    transitions: list[StatusTransition]


class _Format(Struct, array_like=True):
    """The first of a state, which is there in every version."""

    format: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode
_decode_format = msgspec.msgpack.Decoder(_Format).decode


def encode_state(state: LineageState) -> bytes:
    """Return a state as MessagePack."""
    datasets: list[tuple[Observed, ...]] = []
    contents: list[_Content] = []
    # By identity, as the state shares them: telling equal ones apart would cost more than it saves.
    places: dict[int, int] = {}

    def place_of_datasets(observed: tuple[Observed, ...]) -> int:
        place = places.get(id(observed))
        if place is None:
            place = places[id(observed)] = len(datasets)
            datasets.append(observed)
        return place

    def place_of_content(content: RunContent) -> int:
        place = places.get(id(content))
        if place is None:
            place = places[id(content)] = len(contents)
            contents.append(
                _Content(
                    content.parent_run_id,
                    content.job_type,
                    content.job_namespace,
                    content.job_name,
                    content.is_streaming,
                    place_of_datasets(content.inputs),
                    place_of_datasets(content.outputs),
                )
            )
        return place

    runs = [
        (run_id, run.first, run.last, run.seen, place_of_content(run.content)) for run_id, run in state.runs.items()
    ]
    return _encode(
        _State(
            FORMAT,
            datasets,
            contents,
            runs,
            list(state.applications.values()),
            state.parents,
            list(state.executions.values()),
            list(state.transitions),
        )
    )


def decode_state(content: bytes) -> LineageState:
    """Return the state of its bytes.

    :raises StateFormatError: for other bytes
    """
    try:
        written = _decode_format(content).format
        if written != FORMAT:
            raise StateFormatError(f"a state of format {written}; this version reads format {FORMAT}")
        stored = _decode(content)
    except msgspec.DecodeError as error:
        raise StateFormatError(f"no state: {error}") from None
    contents = [
        RunContent(
            one.parent_run_id,
            one.job_type,
            one.job_namespace,
            one.job_name,
            one.is_streaming,
            stored.datasets[one.inputs],
            stored.datasets[one.outputs],
        )
        for one in stored.contents
    ]
    state = LineageState()
    state.runs = {
        run_id: RunState(first, last, seen, contents[place]) for run_id, first, last, seen, place in stored.runs
    }
    state.applications = {one.run_id: one for one in stored.applications}
    state.parents = stored.parents
    state.executions = {(one.application_id, one.execution_id): one for one in stored.executions}
    state.transitions = set(stored.transitions)
    return state
