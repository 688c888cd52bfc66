"""Searches for the smallest program that still fails: all candidates of a round run in one application."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from generator import writes
from generator.names import quoted
from generator.programs import Program, renamed, trace, used
from generator.running import Outcome

CANDIDATES = 10
Run = Callable[[Sequence[Program]], list[Outcome]]


def shrink(failing: Sequence[Outcome], run: Run, rounds: int) -> list[Outcome]:
    """Return each failing program as small as was found in so many rounds."""
    smallest, tried = list(failing), set[str]()
    for number in range(rounds):
        candidates: list[tuple[int, Program]] = []
        for index, outcome in enumerate(smallest):
            fresh = [each for each in _candidates(outcome) if repr(each.steps) not in tried][:CANDIDATES]
            tried |= {repr(each.steps) for each in fresh}
            candidates += [(index, renamed(each, f"s{number}x{len(candidates) + at}")) for at, each in enumerate(fresh)]
        if not candidates:
            break
        for (index, _), outcome in zip(candidates, run([each for _, each in candidates]), strict=True):
            if _is_same(failing[index], outcome) and _size(outcome.program) < _size(smallest[index].program):
                smallest[index] = outcome
    return smallest


def _candidates(outcome: Outcome) -> Iterator[Program]:
    for each in _smaller(outcome):
        pruned = used(each)
        if not any(isinstance(step.operation, writes.Write) for step in pruned.steps):
            continue
        try:
            trace(pruned)
        except (KeyError, IndexError, AttributeError):
            continue
        yield pruned


def _smaller(outcome: Outcome) -> Iterator[Program]:
    program, steps = outcome.program, outcome.program.steps
    facts = outcome.missing + outcome.too_much
    places = {fact.partition(" ")[2].partition(" < ")[0].partition(".")[0] for fact in facts}
    last = max((at for at, step in enumerate(steps) if step.arguments.get("place") in places), default=len(steps) - 1)
    if last < len(steps) - 1:
        yield Program(program.name, steps[: last + 1])
    for at, step in enumerate(steps):
        if isinstance(step.operation, writes.Write):
            yield Program(program.name, steps[:at] + steps[at + 1 :])
            columns = _faulty_columns(outcome, step.arguments["place"])
            if columns and not step.arguments["columns"]:
                yield _changed(program, at, {**step.arguments, "columns": [(name, name) for name in columns]})
        yield from (_rewired(program, at, read) for read in step.reads if step.makes)
    yield from _simpler(program)


def _simpler(program: Program) -> Iterator[Program]:
    """One step with less in it."""
    for at, step in enumerate(program.steps):
        if isinstance(step.operation, writes.Write):
            continue
        for arguments in step.operation.smaller(step.arguments):
            yield _changed(program, at, arguments)
        if step.way == "cte":
            steps = (*program.steps[:at], replace(step, way="view"), *program.steps[at + 1 :])
            yield Program(program.name, steps)


def _faulty_columns(outcome: Outcome, place: str) -> list[str]:
    facts = [fact.partition(" < ")[0].partition(" ")[2] for fact in outcome.missing + outcome.too_much]
    names = [fact.removeprefix(f"{place}.") for fact in facts if fact.startswith(f"{place}.")]
    return sorted({quoted(name) for name in names if name != "*"})


def _changed(program: Program, at: int, arguments: dict[str, object]) -> Program:
    steps = program.steps
    return Program(program.name, (*steps[:at], replace(steps[at], arguments=arguments), *steps[at + 1 :]))


def _rewired(program: Program, at: int, instead: str) -> Program:
    """Leave out a step; what it made is what it read."""
    gone = program.steps[at].makes
    later = (
        replace(step, reads=tuple(instead if read == gone else read for read in step.reads))
        for step in program.steps[at + 1 :]
    )
    return Program(program.name, (*program.steps[:at], *later))


def _is_same(first: Outcome, found: Outcome) -> bool:
    """Whether one of the faults is of the same kind."""
    return bool(signature(first) & signature(found))


def signature(outcome: Outcome) -> set[tuple[str, str, bool]]:
    """The kinds of an outcome's faults."""
    return {
        (what, fact.partition(" ")[0], ".* <" in fact)
        for what, facts in (("missing", outcome.missing), ("too much", outcome.too_much))
        for fact in facts
    }


def _size(program: Program) -> tuple[int, int, int]:
    columns = sum(len(str(step.arguments)) for step in program.steps)
    return len(program.steps), sum(step.way == "cte" for step in program.steps), columns
