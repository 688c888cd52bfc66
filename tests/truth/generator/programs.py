"""Programs: chains of steps that end in writes, made from a seed; and their truth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from generator import frames, groups, joins, nested, rows, sources, subqueries, unaliased, windows, writes
from generator.expressions import Draw
from generator.model import Frame, Output
from generator.operation import Arguments, Operation

OPERATIONS = (
    *rows.OPERATIONS, *groups.OPERATIONS, *windows.OPERATIONS, *joins.OPERATIONS, *nested.OPERATIONS,
    *subqueries.OPERATIONS, *unaliased.OPERATIONS, *frames.OPERATIONS,
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step of a program, which ``makes`` a frame. ``way`` is ``frame`` (DataFrame), ``view`` or ``cte`` (SQL)."""

    operation: Operation
    arguments: Arguments
    reads: tuple[str, ...]
    makes: str
    way: str = "frame"


@dataclass(frozen=True)
class Program:
    """Steps, in order; all places that it writes to are named after it."""

    name: str
    steps: tuple[Step, ...]

    @property
    def kinds(self) -> list[str]:
        """The kinds of operation that it uses."""
        return sorted({step.operation.kind for step in self.steps})


@dataclass
class State:
    """What there is after some steps of a program."""

    frames: dict[str, Frame] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)


def trace(program: Program) -> State:
    """Follow the program; a KeyError where it uses what is not there."""
    state = State()
    for step in program.steps:
        follow(state, step)
    return state


def follow(state: State, step: Step) -> None:
    """Do one step in the model."""
    match step.operation:
        case writes.Source():
            state.frames[step.makes] = sources.table(step.arguments["table"])
        case writes.Write() as write:
            write.leave(step.arguments, state.frames[step.reads[0]], state.outputs)
        case writes.ReadBack():
            state.frames[step.makes] = state.outputs[step.arguments["place"]].read()
        case operation:
            frame = operation.trace(step.arguments, *(state.frames[name] for name in step.reads))
            if not frame.columns:
                raise KeyError(step.makes)
            state.frames[step.makes] = frame


def generate(seed: int) -> Program:
    """The program of a seed."""
    draw, name = Draw(Random(seed)), f"p{seed}"
    state, steps = State(), list[Step]()
    prefers_sql = draw.chance(0.3)

    def add(step: Step) -> None:
        follow(state, step)
        steps.append(step)

    for table in draw.random.sample(list(sources.TABLES), draw.random.randint(1, 3)):
        add(Step(writes.SOURCE, {"table": table}, (), table))
    current = draw.random.choice(list(state.frames))
    for number in range(draw.random.choice([1, 2, 2, 3, 3, 4, 4, 5, 6, 7])):
        if number > 2 and draw.chance(0.15):
            current = _written(draw, name, state, current, add)
        for _ in range(20):
            operation = draw.random.choice(OPERATIONS)
            others = [draw.random.choice(list(state.frames)[-4:]) for _ in range(operation.reads - 1)]
            inputs = [state.frames[each] for each in (current, *others)]
            if others and any(frame.is_row for frame in inputs):
                # Spark makes a scalar subquery of what has one row: the edges of its rows become those of its columns.
                continue
            if isinstance(operation, rows.Cache) and _has_scalar(steps, current):
                # Spark prints the plans of scalar subqueries of cached data nowhere, and the listener does not look.
                continue
            arguments = operation.pick(draw, *inputs)
            if arguments is None:
                continue
            way = _way(draw, operation, arguments, len(others) + 1, prefers_sql=prefers_sql)
            made = f"v{len(steps)}"
            add(Step(operation, arguments, (current, *others), made, way))
            current = made
            break
    _written(draw, name, state, current, add, is_last=True)
    return used(Program(name, tuple(steps)))


def _has_scalar(steps: list[Step], frame: str) -> bool:
    """Whether a scalar subquery is part of a frame."""
    made = next((step for step in steps if step.makes == frame), None)
    if made is None:
        return False
    return isinstance(made.operation, subqueries.Scalar) or any(_has_scalar(steps, each) for each in made.reads)


def used(program: Program) -> Program:
    """Leave out what no write uses."""
    needed: set[str] = set()
    kept: list[Step] = []
    for step in reversed(program.steps):
        if isinstance(step.operation, writes.Write) or step.makes in needed:
            needed |= set(step.reads)
            kept.append(step)
    return Program(program.name, tuple(reversed(kept)))


def _way(draw: Draw, operation: Operation, arguments: Arguments, reads: int, *, prefers_sql: bool) -> str:
    names = ["x"] * reads
    if operation.sql_text(arguments, *names) is None:
        return "frame"
    if operation.frame_text(arguments, *names) is None:
        return draw.random.choice(["view", "cte"])
    return draw.random.choice(["cte", "cte", "view"] if prefers_sql else ["frame", "frame", "frame", "view", "cte"])


def _written(draw: Draw, name: str, state: State, current: str, add: object, *, is_last: bool = False) -> str:
    """Write a frame; perhaps add to it, or read it back."""
    assert callable(add)
    for step, _ in zip(writes.chosen(draw, name, state.frames, state.outputs, current), range(4), strict=False):
        add(Step(*step))
    if not is_last or draw.chance(0.1):
        made = f"back{len(state.frames)}"
        add(Step(writes.READ_BACK, writes.READ_BACK.of(draw, state.outputs), (), made))
        return made
    return current


def renamed(program: Program, name: str) -> Program:
    """The same program, which writes to places of its own."""
    steps = tuple(replace(step, arguments=writes.moved(step.arguments, program.name, name)) for step in program.steps)
    return Program(name, steps)
