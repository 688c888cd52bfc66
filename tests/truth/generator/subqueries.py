"""Operations that ask another frame in a subquery: IN, EXISTS, scalar subqueries and lateral joins."""

from __future__ import annotations

from dataclasses import replace

from generator.expressions import Draw, Expression
from generator.joins import key_pair
from generator.model import NONE, Column, Edges, Frame, Removable, new_token
from generator.names import is_field
from generator.operation import Arguments, Operation

_FUNCTIONS = (
    ("double", "sum({})", "double"), ("double", "max({})", "double"), ("int", "min({})", "int"),
    ("string", "max({})", "string"),     ("date", "min({})", "date"),
)  # fmt: skip


def _asked(right: Frame, condition: Expression | None) -> Frame:
    """The other frame, of which a condition takes some rows."""
    right = right.unordered()
    return right.decided_by(condition.names) if condition else right


def _where(condition: Expression | None, *more: str) -> str:
    parts = [*more, *([condition.text] if condition else [])]
    return f" WHERE {' AND '.join(parts)}" if parts else ""


class Exists(Operation):
    """WHERE with IN, NOT IN, EXISTS or NOT EXISTS, or with IN and an alternative."""

    kind = "IN/EXISTS"
    reads = 2
    FORMS = ("in", "not in", "exists", "not exists", "in or")

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        left, right = frames
        keys, form = key_pair(draw, left, right), draw.random.choice(self.FORMS)
        instead = draw.condition(left, 0)
        if keys is None or (form == "in or" and instead is None):
            return None
        condition = draw.condition(right, 0) if draw.chance(0.5) else None
        if condition and right.edges(condition.names).all & right.edges(keys[1:]).all:
            condition = None
        return {"form": form, "keys": keys, "condition": condition, "instead": instead}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        left, right = frames
        (one, other), form = arguments["keys"], arguments["form"]
        asked = _asked(right, arguments["condition"])
        names = [one, *(arguments["instead"].names if form == "in or" else ())]
        left = left.unordered().decided_by(names)
        return replace(
            left, rows=left.rows | asked.edges([other]).deciding | asked.rows, feeds=left.feeds | asked.feeds,
            may_feed=left.may_feed | asked.may_feed, removable=left.removable + asked.removable,
        )  # fmt: skip

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        (one, other), form, condition = (arguments[each] for each in ("keys", "form", "condition"))
        if form.endswith("exists"):
            inner = f"SELECT 1 FROM {names[1]} i{_where(condition, f'i.{other} = o.{one}')}"
            return f"SELECT * FROM {names[0]} o WHERE {form.upper()} ({inner})"
        inner = f"SELECT {other} FROM {names[1]} i{_where(condition)}"
        more = f" OR {arguments['instead'].text}" if form == "in or" else ""
        return f"SELECT * FROM {names[0]} WHERE {one} {form.removesuffix(' or').upper()} ({inner}){more}"


class Scalar(Operation):
    """One value of another frame, as a column or in a condition."""

    kind = "scalar subquery"
    reads = 2

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        left, right = frames
        for kind, text, made in draw.random.sample(_FUNCTIONS, len(_FUNCTIONS)):
            of, mine = draw.one(right, kind), draw.one(left, made)
            if of is None or is_field(of) or right.is_row:
                continue
            condition = draw.condition(right, 0) if draw.chance(0.5) else None
            if condition and right.edges(condition.names).all & right.edges([of]).all:
                condition = None
            form = draw.random.choice(["column", "filter"]) if mine else "column"
            call = Expression(text.format(of), made, (of,))
            return {"call": call, "condition": condition, "form": form, "mine": mine, "name": draw.name()}
        return None

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        left, right = frames
        asked = _asked(right, arguments["condition"])
        if not arguments["call"].text.startswith("sum"):
            # The least and the greatest are the same without a grouping below.
            asked = asked.deduplicated()
        asked = asked.only(arguments["call"].names).settled()
        of = asked.edges(arguments["call"].names)
        if arguments["form"] == "filter":
            decided = left.decided_by([arguments["mine"]])
            return replace(
                decided, rows=decided.rows | of.deciding | asked.rows, feeds=left.feeds | asked.feeds,
                may_feed=left.may_feed | asked.may_feed,
            )  # fmt: skip
        # Where the column is not used, the other frame is not asked at all.
        token = new_token()
        rows = asked.rows.deciding
        rows = Edges(NONE, rows.indirect - asked.stored, rows.may | (rows.indirect & asked.stored))
        column = Column(arguments["call"].type, of | rows, is_plain=False, tokens=frozenset({token}))
        return replace(
            left, columns={**left.columns, arguments["name"]: column}, feeds=left.feeds | asked.feeds,
            may_feed=left.may_feed | asked.may_feed,
            removable=(*left.removable, Removable(token, Edges(), asked.feeds - left.feeds, is_active=True)),
        )  # fmt: skip

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        inner = f"(SELECT {arguments['call'].text} FROM {names[1]}{_where(arguments['condition'])})"
        if arguments["form"] == "filter":
            return f"SELECT * FROM {names[0]} WHERE {arguments['mine']} <= {inner}"
        return f"SELECT *, {inner} AS {arguments['name']} FROM {names[0]}"


class Correlated(Operation):
    """One value of another frame for each row, by a correlated subquery or a lateral join: Spark makes a join of it."""

    kind = "correlated subquery"
    reads = 2

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        left, right = frames
        keys = key_pair(draw, left, right)
        kind, text, made = draw.random.choice(_FUNCTIONS)
        of = draw.one(right, kind)
        if keys is None or of is None or is_field(of) or right.is_row:
            return None
        if right[of].edges.all & right.edges(keys[1:]).all:
            return None
        call = Expression(text.format(f"i.{of}"), made, (of,))
        return {"call": call, "keys": keys, "form": draw.random.choice(["scalar", "lateral"]), "name": draw.name()}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        left, right = frames[0].unordered(), frames[1].unordered()
        one, other = arguments["keys"]
        token = new_token()
        keys = (left.edges([one]) | right.edges([other])).deciding
        extra = keys | right.rows
        tokens = right.tokens([*arguments["call"].names, other]) | {token} | right.needed
        edges = right.edges(arguments["call"].names) | Edges(may=extra.all)
        column = Column(arguments["call"].type, edges, is_plain=False, tokens=tokens)
        dropped = Removable(token, extra, right.feeds - left.feeds, is_active=True)
        return replace(
            left.unsure([one]), columns={**left.columns, arguments["name"]: column}, rows=left.rows | extra,
            feeds=left.feeds | right.feeds, may_feed=left.may_feed | right.may_feed,
            removable=(*left.removable, *right.removable, dropped),
        )  # fmt: skip

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        (one, other), name = arguments["keys"], arguments["name"]
        inner = f"SELECT {arguments['call'].text} AS {name} FROM {names[1]} i WHERE i.{other} = o.{one}"
        if arguments["form"] == "lateral":
            return f"SELECT o.*, {name} FROM {names[0]} o, LATERAL ({inner})"
        return f"SELECT o.*, ({inner}) AS {name} FROM {names[0]} o"


OPERATIONS: tuple[Operation, ...] = (Exists(), Scalar(), Correlated())
