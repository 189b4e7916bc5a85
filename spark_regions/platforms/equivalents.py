"""Catalyst expressions as SQL of another engine: only what an entry of its table shows to give Spark's value.

An expression without an entry, or that no entry of its class takes, is `Unproven`. So is one with a constructor
argument that the entry did not ask for. Where Spark would raise, the engine raises; where the engine alone raises,
Spark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from spark_regions.errors import WithReason
from spark_regions.platforms.typed import Expression

UNREAD = MappingProxyType(
    {
        "allowDecimalPrecisionLoss": "decides on the type of the result, which is told",
        "context": "the place in the query's text, for messages",
        "queryContext": "the place in the query's text, for messages",
        "resultId": "names the result of an aggregate function, which its place tells",
    }
)
"""Constructor arguments that no value depends on, and why."""
MOST_DEPTH = 80
MOST_CHARACTERS = 100_000
"""Of an expression: what an entry says twice doubles with each level."""


class Unproven(WithReason):
    """The engine is not shown to give Spark's value."""


class Sql(msgspec.Struct, frozen=True, gc=False):
    """
    :param text: an expression of the engine, in brackets where it needs them; of exactly the type that `type` maps to
    :param type: of Spark
    :param raises: Spark may raise on some row. What only the engine raises on does not count: then Spark runs
    :param narrow: where a decimal's type is wider than 64 bits, the same number in a type of 64 bits, with which the
        engine is faster; it raises where the number does not fit
    """

    text: str
    type: str
    raises: bool = False
    narrow: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """For the test of an entry.

    :param spark: Spark's SQL, with {0}, {1} for columns of `types`
    :param ansi: value of `spark.sql.ansi.enabled`; None for both
    :param grouped: {0} … are aggregated by a further column
    """

    spark: str
    types: tuple[str, ...]
    ansi: bool | None = None
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How an aggregate function is called.

    :param after: FILTER and OVER clauses
    :param over: the OVER clause alone
    """

    distinct: bool = False
    after: str = ""
    over: str = ""


@dataclass(frozen=True, slots=True)
class Equivalent:
    """
    :param kind: name of Catalyst's class
    :param args: what it takes, for readers
    :param why: it is equal, by the sources of both
    :param rule: the engine's SQL, or raises `Unproven`
    """

    kind: str
    family: str
    args: str
    why: str
    examples: tuple[Example, ...]
    rule: Callable[[Call], Sql]


Table = Mapping[str, tuple[Equivalent, ...]]
"""By kind, in the order in which they are tried."""


def table_of(entries: Iterable[Equivalent]) -> Table:
    grouped: dict[str, tuple[Equivalent, ...]] = {}
    for each in entries:
        grouped[each.kind] = (*grouped.get(each.kind, ()), each)
    return MappingProxyType(grouped)


@dataclass(slots=True)
class Translation:
    """What the expressions of one node share.

    :param scope: the engine's columns by attribute id, and those of subqueries by `subquery(plan)`
    :param used: entries, in the order of their first use
    """

    scope: Mapping[str, Sql]
    table: Table
    used: dict[Equivalent, None] = field(default_factory=dict)
    done: dict[tuple[int, Aggregation | None], tuple[Expression, Sql | Unproven]] = field(default_factory=dict)
    depth: int = 0

    def of(self, expression: Expression, aggregation: Aggregation | None = None) -> Sql:
        """The engine's SQL, which gives Spark's value in every row, found once; :raises Unproven: that is not shown."""
        key = (id(expression), aggregation)
        known = self.done.get(key)
        if known is None:
            self.depth += 1
            try:
                found: Sql | Unproven = self._new(expression, aggregation)
            except Unproven as refusal:
                # The frames that it came through hold this.
                found = refusal.with_traceback(None)
            finally:
                self.depth -= 1
            # As long as it is kept, no other expression has its id.
            self.done[key] = expression, found
        else:
            found = known[1]
        if isinstance(found, Unproven):
            raise Unproven(found.code, found.detail)
        return found

    def _new(self, expression: Expression, aggregation: Aggregation | None) -> Sql:
        if self.depth > MOST_DEPTH:
            raise Unproven("PLAN_TOO_LARGE", f"{expression.kind} in {MOST_DEPTH} others")
        if expression.unknown:
            raise Unproven("NOT_IN_TABLE", f"{expression.kind} with unknown arguments")
        if expression.kind == "AttributeReference":
            return self._named(expression, expression.fields.get("id", ""))
        if expression.kind == "ScalarSubquery" and expression.plan is not None:
            return self._named(expression, subquery(expression.plan))
        if expression.kind == "Alias":
            return self.of(expression.children[0], aggregation)
        refusal = Unproven("NOT_IN_TABLE", expression.kind)
        for entry in self.table.get(expression.kind, ()):
            call = Call(expression, self, aggregation)
            try:
                found = entry.rule(call)
                call.check(found)
            except Unproven as declined:
                # An entry of other types has less to say than one that looked further.
                if refusal.code in ("NOT_IN_TABLE", "UNPROVEN_TYPE"):
                    refusal = declined
            else:
                self.used[entry] = None
                return found
        raise refusal

    def _named(self, expression: Expression, name: str) -> Sql:
        found = self.scope.get(name)
        if found is None:
            raise Unproven("NOT_IN_TABLE", f"{expression.kind} of something else")
        if found.type != expression.type:
            raise Unproven("UNPROVEN_TYPE", f"{expression.kind} is {found.type}, not {expression.type}")
        return found


@dataclass(slots=True)
class Call:
    """One expression as an entry's rule sees it.

    :param aggregation: of a function in an aggregate expression or a window; None of any other
    """

    expression: Expression
    translation: Translation
    aggregation: Aggregation | None = None
    seen: set[str] = field(default_factory=set)
    read: list[Sql] = field(default_factory=list)

    @property
    def type(self) -> str:
        return self.expression.type

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(child.type for child in self.expression.children)

    @property
    def args(self) -> tuple[Sql, ...]:
        return tuple(self.translate(child) for child in self.expression.children)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(each.text for each in self.args)

    def translate(self, expression: Expression, aggregation: Aggregation | None = None) -> Sql:
        found = self.translation.of(expression, aggregation)
        self.read.append(found)
        return found

    def field(self, name: str) -> str:
        self.seen.add(name)
        if name not in self.expression.fields:
            raise Unproven("UNREAD_FIELD", f"{self.expression.kind} does not tell {name}")
        return self.expression.fields[name]

    def ignore(self, name: str) -> None:
        """A field that may be there, and on which this entry's value does not depend."""
        self.seen.add(name)

    def flag(self, name: str) -> bool:
        return self.field(name) == "true"

    @property
    def ansi(self) -> bool:
        """Whether errors raise, rather than give null or what is left of the bits.

        Entries for an expression that traps errors itself would have to show that it gives null for the same ones.
        """
        for name in ("failOnError", "ansiEnabled"):
            if name in self.expression.fields:
                return self.flag(name)
        mode = self.field("evalMode")
        if mode not in ("ANSI", "LEGACY"):
            raise Unproven("UNPROVEN_ARGUMENT", f"{self.expression.kind} in mode {mode}")
        return mode == "ANSI"

    def literal(self, position: int) -> str:
        """The value of a child that is a literal and not null."""
        children = self.expression.children
        value = children[position].fields.get("value") if position < len(children) else None
        if value is None or children[position].kind != "Literal":
            raise Unproven("UNPROVEN_ARGUMENT", f"argument {position} of {self.expression.kind} is no literal")
        return value

    def needs(self, condition: bool, what: str, code: str = "UNPROVEN_ARGUMENT") -> None:
        """:raises Unproven: the side condition does not hold"""
        if not condition:
            raise Unproven(code, f"{self.expression.kind} {what}")

    def needs_types(self, *allowed: Container[str]) -> None:
        """One set of types for each child, the last for all further ones."""
        each = [allowed[min(at, len(allowed) - 1)] for at in range(len(self.types))]
        taken = all(data_type in types for data_type, types in zip(self.types, each, strict=True))
        self.needs(taken and bool(self.types), f"of {', '.join(self.types) or 'nothing'}", "UNPROVEN_TYPE")

    def aggregate(self, name: str, argument: str) -> str:
        """A call of an aggregate function of the engine, as this one is called."""
        how = self.how
        return f"{name}({'DISTINCT ' if how.distinct else ''}{argument}){how.after}"

    @property
    def how(self) -> Aggregation:
        if self.aggregation is None:
            raise Unproven("NOT_IN_TABLE", f"{self.expression.kind} outside of an aggregate")
        return self.aggregation

    def sql(self, text: str, raises: bool = False, narrow: str = "") -> Sql:
        """The result: Spark may raise on it, or on a child that was translated for it."""
        return Sql(text, self.type, raises or any(each.raises for each in self.read), narrow)

    def check(self, found: Sql) -> None:
        """:raises Unproven: a field was not looked at, or the type is not Spark's"""
        unread = set(self.expression.fields) - self.seen - set(UNREAD)
        self.needs(not unread, f"has {', '.join(sorted(unread))}", "UNREAD_FIELD")
        self.needs(found.type == self.type, f"is {self.type}, not {found.type}", "UNPROVEN_TYPE")
        self.needs(len(found.text) <= MOST_CHARACTERS, f"in {len(found.text)} characters", "PLAN_TOO_LARGE")


def subquery(plan: int) -> str:
    """The name in a scope of the scalar subquery with this root."""
    return f"subquery {plan}"
