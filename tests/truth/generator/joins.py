"""Operations on two frames: joins, set operations and subqueries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from generator.expressions import Draw
from generator.model import Column, Edges, Frame, Removable, new_token
from generator.names import bare, is_field
from generator.operation import Arguments, Operation

KINDS = ("inner", "inner", "left", "left", "right", "full", "left_semi", "left_anti")
_SQL = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL OUTER JOIN",
        "left_semi": "LEFT SEMI JOIN", "left_anti": "LEFT ANTI JOIN"}  # fmt: skip
ONE_SIDE = ("left_semi", "left_anti")


def key_pair(draw: Draw, left: Frame, right: Frame) -> tuple[str, str] | None:
    """A column of each that can be compared."""
    kinds = (("int", "bigint"), ("string",), ("date",))
    for group in draw.random.sample(kinds, len(kinds)):
        one = [name for name in draw.names_of(left, *group) if not is_field(name)]
        other = [name for name in draw.names_of(right, *group) if not is_field(name)]
        if one and other:
            return one[0], other[0]
    return None


def joined(kind: str, left: Frame, right: Frame, keys: tuple[str, str]) -> tuple[Frame, Frame]:
    """Both sides as the join leaves them: the first one's ``rows`` and the like hold for both."""
    one, other = left.unordered(), right.unordered()
    deciding = (left.edges(keys[:1]) | right.edges(keys[1:])).deciding
    extra = deciding | other.rows
    removable = one.removable + other.removable
    if kind in ("left", "right"):
        # Spark drops the side that is not used where its rows are unique, or below an aggregate that does not care.
        loose, key = (other, keys[1]) if kind == "left" else (one, keys[0])
        unique = any((len(each) == 1 and loose[key].id in each) or len(each) == 0 for each in loose.keys)
        token = new_token()
        marked = replace(
            loose, columns={name: replace(each, tokens=each.tokens | {token}) for name, each in loose.columns.items()}
        )
        one, other = (one, marked) if kind == "left" else (marked, other)
        dropped = deciding | loose.rows
        removable += (Removable(token, dropped, loose.feeds, is_active=unique),)
    used = {token for side, key in ((left, keys[0]), (right, keys[1])) for token in side[key].tokens}
    whole = Frame(
        one.columns, one.rows | extra, one.feeds | other.feeds, one.may_feed | other.may_feed,
        keys=frozenset(a | b for a in {*one.keys, frozenset()} for b in {*other.keys, frozenset()} if a or b),
        removable=tuple(each for each in removable if each.token not in used), is_row=one.is_row and other.is_row,
    ).unsure(keys[:1])  # fmt: skip
    return whole, other.unsure(keys[1:])


class Join(Operation):
    """A join on an equality and perhaps a condition; columns of the right side get new names."""

    kind = "join"
    reads = 2

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        left, right = frames
        keys = key_pair(draw, left, right)
        if keys is None:
            return None
        kind = draw.random.choice(KINDS)
        mine = draw.random.sample(list(left.columns), min(len(left.columns), 4))
        theirs = draw.random.sample(list(right.columns), min(len(right.columns), 3))
        also = (
            draw.two(Frame({**_prefixed("l", left), **_prefixed("r", right)}), "double", "date")
            if draw.chance(0.15)
            else None
        )
        sides = Frame({**_prefixed("l", left), **_prefixed("r", right)})
        equal = sides.edges([f"l.{keys[0]}", f"r.{keys[1]}"]).all
        if also and (also[0][0] == also[1][0] or sides.edges(also).all & equal):
            # "x = y AND x < y" holds for no row, and Spark knows it.
            also = None
        return {
            "kind": kind, "keys": keys, "mine": mine, "theirs": [(name, draw.name()) for name in theirs], "also": also,
            "hint": draw.random.choice(["", "", "", "broadcast", "merge"]),
        }  # fmt: skip

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        left, right = frames
        whole, other = joined(arguments["kind"], left, right, arguments["keys"])
        if arguments["also"]:
            sides = Frame({**_prefixed("l", left), **_prefixed("r", right)})
            more = sides.edges(arguments["also"]).deciding
            tokens = sides.tokens(arguments["also"])
            removable = tuple(
                replace(each, edges=each.edges | more)
                if index == len(whole.removable) - 1 and arguments["kind"] in ("left", "right")
                else each
                for index, each in enumerate(whole.removable)
                if each.token not in tokens
            )
            whole = replace(whole, rows=whole.rows | more, removable=removable)
            whole, other = (
                side.unsure([name[2:] for name in arguments["also"] if name[0] == letter])
                for letter, side in (("l", whole), ("r", other))
            )
        columns = {name: whole[name] for name in arguments["mine"]}
        if arguments["kind"] not in ONE_SIDE:
            columns |= {name: other[old] for old, name in arguments["theirs"]}
        return replace(whole, columns=columns)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        right = f"{names[1]}.hint({arguments['hint']!r})" if arguments["hint"] else names[1]
        kept = ", ".join(repr(each) for each in self._list(arguments))
        on, kind = self._on(arguments), arguments["kind"]
        return f"{names[0]}.alias('l').join({right}.alias('r'), f.expr({on!r}), {kind!r}).selectExpr({kept})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        hint = f"/*+ {arguments['hint'].upper()}(r) */ " if arguments["hint"] else ""
        kept = ", ".join(self._list(arguments))
        return f"SELECT {hint}{kept} FROM {names[0]} l {_SQL[arguments['kind']]} {names[1]} r ON {self._on(arguments)}"

    def _on(self, arguments: Arguments) -> str:
        one, other = arguments["keys"]
        also = arguments["also"]
        return f"l.{one} = r.{other}" + (f" AND {also[0]} < {also[1]}" if also else "")

    def _list(self, arguments: Arguments) -> list[str]:
        theirs = [] if arguments["kind"] in ONE_SIDE else arguments["theirs"]
        return [f"l.{name} AS {name}" for name in arguments["mine"]] + [f"r.{old} AS {name}" for old, name in theirs]


def _prefixed(side: str, frame: Frame) -> Mapping[str, Column]:
    return {f"{side}.{name}": each for name, each in frame.columns.items()}


class JoinUsing(Operation):
    """A join on a column that both have; of a full join it is the first that is not null."""

    kind = "join using"
    reads = 2

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        left, right = frames
        keys = key_pair(draw, left, right)
        if keys is None or left[keys[0]].type != right[keys[1]].type:
            return None
        theirs = [
            name for name in draw.random.sample(list(right.columns), min(len(right.columns), 3)) if name != keys[1]
        ]
        kind = draw.random.choice(KINDS[:-2])
        if kind == "full" and not (left[keys[0]].is_nullable and right[keys[1]].is_nullable):
            kind = "inner"
        return {"kind": kind, "keys": keys, "theirs": [(name, draw.name()) for name in theirs]}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        (left, right), (one, another), kind = frames, arguments["keys"], arguments["kind"]
        whole, other = joined(kind, left, right, (one, another))
        key = whole[one]
        if kind == "right":
            key = other[another]
        elif kind == "full":
            edges = left[one].edges | right[another].edges
            key = Column(key.type, edges | edges.deciding, tokens=key.tokens | other[another].tokens)
        columns = {one: key, **{name: each for name, each in whole.columns.items() if name != one}}
        return replace(whole, columns=columns | {name: other[old] for old, name in arguments["theirs"]})

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        one, right = bare(arguments["keys"][0]), self._right(arguments)
        return f"{names[0]}.join({names[1]}.selectExpr({', '.join(map(repr, right))}), {one!r}, {arguments['kind']!r})"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        right = f"(SELECT {', '.join(self._right(arguments))} FROM {names[1]})"
        return f"SELECT * FROM {names[0]} {_SQL[arguments['kind']]} {right} USING ({arguments['keys'][0]})"

    def _right(self, arguments: Arguments) -> list[str]:
        one, other = arguments["keys"]
        return [f"{other} AS {one}", *(f"{old} AS {name}" for old, name in arguments["theirs"])]


class CrossJoin(Operation):
    """Each row with each."""

    kind = "cross join"
    reads = 2

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        return {"theirs": [(name, draw.name()) for name in draw.random.sample(list(frames[1].columns), 1)]}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        one, other = (each.anchored() for each in frames)
        columns = {**one.columns, **{name: other[old] for old, name in arguments["theirs"]}}
        keys = frozenset(a | b for a in {*one.keys, frozenset()} for b in {*other.keys, frozenset()} if a or b)
        return Frame(
            columns, one.rows | other.rows, one.feeds | other.feeds, one.may_feed | other.may_feed, keys=keys,
            removable=one.removable + other.removable, is_row=one.is_row and other.is_row,
        )  # fmt: skip

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        ((old, name),) = arguments["theirs"]
        kept = f"{old} AS {name}"
        return f"{names[0]}.limit(20).crossJoin({names[1]}.limit(5).selectExpr({kept!r}))"


class SetOperation(Operation):
    """UNION, INTERSECT and EXCEPT, of all rows or distinct ones; by position."""

    kind = "set operation"
    reads = 2
    FORMS = ("union", "union", "union", "unionByName", "intersect", "intersectAll", "exceptAll", "subtract")
    WORDS: ClassVar[dict[str, str]] = {"union": "UNION ALL", "intersect": "INTERSECT", "intersectAll": "INTERSECT ALL",
             "exceptAll": "EXCEPT ALL", "subtract": "EXCEPT"}  # fmt: skip

    def pick(self, draw: Draw, *frames: Frame) -> Arguments | None:
        one, other = frames
        form = draw.random.choice(self.FORMS)
        pairs: list[tuple[str, str]] = []
        for name in draw.random.sample(list(one.columns), len(one.columns)):
            left = {of for of, _ in pairs}
            taken = {to for _, to in pairs}
            match = [to for to in other.columns if other[to].type == one[name].type and to not in taken]
            is_fit = form.startswith("union") or ("map<" not in one[name].type and one[name].is_plain)
            match = [to for to in match if form.startswith("union") or other[to].is_plain]
            if match and is_fit and name not in left:
                pairs.append((name, draw.random.choice(match)))
        if not pairs or (not form.startswith("union") and (one.is_row or other.is_row)):
            return None
        alone = (
            [name for name in one.columns if name not in {of for of, _ in pairs}][:1] if form == "unionByName" else []
        )
        return {"form": form, "pairs": pairs[:4], "alone": alone}

    def trace(self, arguments: Arguments, *frames: Frame) -> Frame:
        form, pairs = arguments["form"], arguments["pairs"]
        one, other = (each.unordered() for each in frames)
        is_union = form.startswith("union")
        if not is_union:
            # A DISTINCT, or a count of equal rows, is next.
            one, other = (one.only(of for of, _ in pairs).settled(), other.only(to for _, to in pairs).settled())
        rows = one.rows | other.rows
        columns = {}
        for name, to in pairs:
            left, right = one[name], other[to]
            tokens = left.tokens | right.tokens
            if is_union:
                edges, plain = left.edges | right.edges, left.is_plain and right.is_plain
                columns[name] = Column(
                    left.type, edges, {}, plain, left.is_constant and right.is_constant, tokens=tokens
                )
            else:
                # INTERSECT ALL and EXCEPT ALL are unions of rows that count for and against: a witness sees a union.
                may = Edges(may=right.edges.all if form.endswith("All") else frozenset())
                columns[name] = Column(left.type, left.edges | may, tokens=tokens)
        for name in arguments["alone"]:
            columns[name] = replace(Column(one[name].type, one[name].edges, tokens=one[name].tokens), is_plain=False)
        feeds, may_feed = one.feeds | other.feeds, one.may_feed | other.may_feed
        if is_union:
            return Frame(columns, rows, feeds, may_feed, removable=one.removable + other.removable)
        compared = one.edges(name for name, _ in pairs) | other.edges(to for _, to in pairs)
        unique = frozenset() if form.endswith("All") else frozenset({frozenset(each.id for each in columns.values())})
        return Frame(columns, rows | compared.deciding, feeds, may_feed, keys=unique)

    def frame_text(self, arguments: Arguments, *names: str) -> str | None:
        form, pairs = arguments["form"], arguments["pairs"]
        if form == "unionByName":
            left = ", ".join(repr(name) for name in [*(of for of, _ in pairs), *arguments["alone"]])
            right = ", ".join(repr(f"{to} AS {of}") for of, to in reversed(pairs))
            missing = ", allowMissingColumns=True" if arguments["alone"] else ""
            return f"{names[0]}.selectExpr({left}).unionByName({names[1]}.selectExpr({right}){missing})"
        left, right = (", ".join(repr(pair[at]) for pair in pairs) for at in (0, 1))
        return f"{names[0]}.selectExpr({left}).{form}({names[1]}.selectExpr({right}))"

    def sql_text(self, arguments: Arguments, *names: str) -> str | None:
        form, pairs = arguments["form"], arguments["pairs"]
        if form not in self.WORDS:
            return None
        left, right = (", ".join(pair[at] for pair in pairs) for at in (0, 1))
        return f"SELECT {left} FROM {names[0]} {self.WORDS[form]} SELECT {right} FROM {names[1]}"


OPERATIONS: tuple[Operation, ...] = (Join(), JoinUsing(), CrossJoin(), SetOperation())
