"""Writes a state as bytes and reads it back, so that shards can be folded in one place and merged in another.

What runs share in memory is written once, and shared again when it is read.
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
"""Count this up when a state of the same events is written in other bytes, or says something else."""


class StateFormatError(ValueError):
    """Bytes that are no state, or that of another version of this package; the text says which."""


class _Format(Struct, array_like=True):
    """The first of a state, which is there in every version."""

    format: int


class _State(_Format, array_like=True):
    """All of a state, with places in ``datasets`` and ``contents``; a run is (run id, first, last, seen, content)."""

    datasets: list[tuple[Observed, ...]]
    contents: list[tuple[str, str | None, str, str, bool, int, int]]
    runs: list[tuple[str, float, float, int, int]]
    applications: list[Application]
    parents: dict[str, ParentRun]
    executions: list[Execution]
    transitions: list[StatusTransition]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode
_decode_format = msgspec.msgpack.Decoder(_Format).decode


def encode_state(state: LineageState) -> bytes:
    """Return a state as MessagePack."""
    # By identity, as the state shares them: finding equal ones would cost more than it saves.
    contents = {id(run.content): run.content for run in state.runs.values()}
    datasets = {id(one): one for content in contents.values() for one in (content.inputs, content.outputs)}
    places = {key: place for shared in (contents, datasets) for place, key in enumerate(shared)}
    return _encode(
        _State(
            FORMAT,
            list(datasets.values()),
            [
                (
                    one.parent_run_id,
                    one.job_type,
                    one.job_namespace,
                    one.job_name,
                    one.is_streaming,
                    places[id(one.inputs)],
                    places[id(one.outputs)],
                )
                for one in contents.values()
            ],
            [(run_id, run.first, run.last, run.seen, places[id(run.content)]) for run_id, run in state.runs.items()],
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
        RunContent(parent, job_type, namespace, name, is_streaming, stored.datasets[inputs], stored.datasets[outputs])
        for parent, job_type, namespace, name, is_streaming, inputs, outputs in stored.contents
    ]
    state = LineageState()
    state.runs = {
        run_id: RunState(first, last, seen, contents[place]) for run_id, first, last, seen, place in stored.runs
    }
    state.applications = {one.run_id: one for one in stored.applications}
    state.parents = stored.parents
    state.executions = {one.key: one for one in stored.executions}
    state.transitions = set(stored.transitions)
    return state
