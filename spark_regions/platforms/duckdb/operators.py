"""Operators of Catalyst's as a SELECT over those of their inputs.

Each has columns `c` and the attribute's id. Rows come in any order, as from any operator of Spark's but a sort. What is
proven of operators, from the sources of both:

- Two rows are of one group, of one partition, or distinct, where their keys are equal and null equals null. Not with
  floating-point keys: Spark makes 0.0 of -0.0 and one NaN of all (NormalizeFloatingNumbers), DuckDB keeps the first.
- A row joins where the condition is true, not where it is null. Semi and anti join give each row of the left once.
- Strings compare by their bytes, nulls come where the statement says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice, product
from math import copysign, isnan
from typing import Any

from msgspec.structs import replace

from spark_regions.platforms.duckdb.rows import ANY, Key, Rows, column
from spark_regions.platforms.duckdb.text import ENGINE_TYPES, INT64_DIGITS, UNTOLD, cast, engine_type, unless
from spark_regions.platforms.equivalents import Sql, Table, Translation, Unproven, subquery
from spark_regions.platforms.typed import (
    FLOATING,
    MAX_PRECISION,
    Args,
    Attribute,
    Expression,
    Node,
    SortKey,
    decimal_of,
    decimal_type,
)
from spark_regions.wire.actions import FinishedFunction, RouteColumn, RouteTable

BELOW = "INPUT_IN_SPARK"
MOST_ROWS = 1_000
"""Of a local relation, which becomes a part of the statement."""
MOST_NAMES = 16
"""Of one set of unique columns, whose values may go on under several."""
COMPARISONS = frozenset(
    {"EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual", "In", "InSet"}
)
OF_NO_NULL = COMPARISONS - {"EqualNullSafe"} | {"Contains", "EndsWith", "Like", "StartsWith"}
"""True of no null: of neither side, or of the value that is looked for in a list."""
INPUTS = {"LogicalRelation": 0, "LocalRelation": 0, "Join": 2}
"""Of operators that do not have one; unions have any number, but no expressions."""
RANKS = {"Rank": "rank", "DenseRank": "dense_rank", "RowNumber": "row_number"}


@dataclass(frozen=True, slots=True)
class Finished:
    """An aggregate's keys and functions, whose result Spark computes."""

    rows: Rows
    columns: tuple[RouteColumn, ...]
    functions: tuple[FinishedFunction, ...]


@dataclass(slots=True)
class Translated:
    """What is known of the nodes so far.

    :param read: attributes that something reads
    :param rows: of each node, or why there are none
    :param limits: nodes that are the first rows of others, if no keys are equal where they end
    :param finished: aggregates whose functions alone are had
    :param untold: columns of files with values of which their statistics do not tell
    """

    nodes: Mapping[int, Node]
    read: frozenset[str]
    table: Table
    untold: frozenset[str] = frozenset()
    rows: dict[int, Rows | Unproven] = field(default_factory=dict)
    limits: dict[int, tuple[Rows, int]] = field(default_factory=dict)
    finished: dict[int, Finished] = field(default_factory=dict)

    def of(self, number: int, own: bool = False) -> Rows:
        """
        :param own: tell its own reason
        :raises Unproven: the node, or what is below it, is not shown to be equal
        """
        found = self.rows.get(number)
        if isinstance(found, Rows):
            return found
        if own and found is not None:
            raise Unproven(found.code, found.detail)
        raise Unproven(BELOW, self.nodes[number].operator if number in self.nodes else str(number))


class Making:
    """One node's rows in the making: what is read for them comes together here."""

    def __init__(self, known: Translated, node: Node) -> None:
        self.known = known
        self.node = node
        self.args = node.args
        self.tables: dict[str, RouteTable] = {}
        self.shared: dict[str, str] = {}
        self.raises = False
        self._scopes: dict[tuple[int, ...], tuple[tuple[Rows, ...], dict[str, Sql], Translation]] = {}
        # The plans of its subqueries come behind its inputs.
        apart = subqueries(node)
        self._asks = bool(apart)
        self.inputs = [child for child in node.children if child not in apart]

    def take(self, number: int, evaluated: Callable[[Rows], bool] = lambda rows: False) -> Rows:
        """Rows of an input.

        :param evaluated: whether each expression of its rows is, whatever is above
        """
        rows = self.known.of(number)
        if rows.raising and not evaluated(rows):
            rows = rows.materialized(f"x{number}")
        return self.add(rows)

    def add(self, rows: Rows) -> Rows:
        self.tables.update((each.name, each) for each in rows.tables)
        self.shared.update(rows.shared)
        self.raises |= rows.raises
        return rows

    def only(self) -> Rows:
        (number,) = self.inputs
        return self.take(number)

    def sql(self, expression: Expression, *inputs: Rows) -> Sql:
        """The expression over columns of the inputs."""
        scope, translation = self._over(inputs)
        for plan in sorted({each.plan for each in walk(expression) if each.plan is not None}) if self._asks else ():
            value = self.take(plan)
            if len(value.output) == 1:
                if frozenset() not in value.unique:
                    value = self.add(_one_row(value, plan))
                (found,) = value.output
                scope[subquery(plan)] = Sql(f"(SELECT {column(found.id)} FROM {value.source})", found.type)
        return translation.of(expression)

    def scope(self, *inputs: Rows) -> dict[str, Sql]:
        """Of each expression over these inputs."""
        return self._over(inputs)[0]

    def _over(self, inputs: tuple[Rows, ...]) -> tuple[dict[str, Sql], Translation]:
        """With what is translated already of expressions over these inputs, which live as long."""
        key = tuple(map(id, inputs))
        if key not in self._scopes:
            scope = {name: value for rows in inputs for name, value in passed(rows).items()}
            self._scopes[key] = inputs, scope, Translation(scope, self.known.table)
        return self._scopes[key][1:]

    def condition(self, expression: Expression, *inputs: Rows) -> str:
        """What decides on rows is not evaluated on each of them."""
        found = self.sql(expression, *inputs)
        if found.raises:
            raise Unproven("MAY_RAISE", expression.kind)
        return found.text

    def keys(self, found: Iterable[Expression], rows: Rows) -> list[str]:
        """Of groups, partitions and joins."""
        texts = []
        for each in found:
            if each.type in FLOATING:
                raise Unproven("FLOAT_KEY", each.kind)
            texts.append(self.condition(each, rows))
        return texts

    def terms(self, order: Iterable[SortKey], rows: Rows) -> list[str]:
        keys = list(order)
        texts = [self.sort_key(each.child, rows) for each in keys]
        return [Key(text, each.ascending, each.nulls_first).term for text, each in zip(texts, keys, strict=True)]

    def sort_key(self, expression: Expression, rows: Rows) -> str:
        """Of floating-point numbers NaN comes last, and zeros of both signs are equal, in both (Radix::EncodeDouble).
        What DuckDB has sorted by it makes of its keys again, so that a zero's sign is lost where it is one.
        """
        text = self.condition(expression, rows)
        if expression.type not in FLOATING:
            return text
        return f"CASE WHEN {text} = 0 THEN {cast('0', engine_type(expression.type))} ELSE {text} END"

    def select(
        self, columns: Mapping[str, Sql], *inputs: Rows, where: Iterable[str] = (), behind: str = "", **changes: Any
    ) -> Rows:
        """A SELECT of the node's output.

        :param columns: by attribute; those of an input that nothing reads may be absent
        :param inputs: all of whose rows are combined
        """
        output = [each for each in self.node.output if each.id in columns]
        for each in output:
            if columns[each.id].type != each.type:
                raise Unproven("UNPROVEN_TYPE", f"{each.name} is {columns[each.id].type}, not {each.type}")
        raising = frozenset(column(each.id) for each in output if columns[each.id].raises)
        known = frozenset(column(each.id) for each in output if columns[each.id].narrow)
        # An output can have a column twice.
        listed = dict.fromkeys(named(columns[each.id].text, column(each.id)) for each in output)
        opened = [rows.opened for rows in inputs]
        made = Rows(
            tuple(listed),
            tuple(item for rows in opened for item in rows.items),
            frozenset(name for rows in opened for name in rows.exposed),
            tuple(output),
            (*(each for rows in opened for each in rows.where), *where),
            behind,
            tuple(self.tables.values()),
            dict(self.shared),
            raising=raising,
            raises=bool(raising) or self.raises,
            narrow=known,
        )
        return replace(made, **changes)

    def from_item(self, columns: Mapping[str, Sql], item: str, **changes: Any) -> Rows:
        """The same from something that is no input."""
        made = self.select(columns)
        return replace(made, items=(item,), exposed=frozenset(made.names), **changes)

    def over(self, rows: Rows, where: Iterable[str] = (), behind: str = "", **changes: Any) -> Rows:
        """The same columns, of some of the rows."""
        opened = rows.opened
        made = replace(
            opened,
            where=(*opened.where, *where),
            behind=behind,
            tables=tuple(self.tables.values()),
            shared=dict(self.shared),
            raises=self.raises,
        )
        return replace(made, **changes)


def _one_row(rows: Rows, number: int) -> Rows:
    """The value of the only row, or null. Where there are more Spark raises, whether the value is asked for or not."""
    (value,) = rows.output
    name = column(value.id)
    only = unless("count(*) > 1", "several rows", f"any_value({name})", engine_type(value.type))
    one = replace(
        rows.closed,
        columns=(f"{only} AS {name}",),
        behind=" ",
        unique=frozenset({frozenset()}),
        raising=frozenset({name}),
        raises=True,
    )
    return one.materialized(f"v{number}")


def named(text: str, name: str) -> str:
    return text if text == name else f"{text} AS {name}"


def passed(rows: Rows) -> dict[str, Sql]:
    return {each.id: _column(each, column(each.id) in rows.narrow) for each in rows.output}


def _column(attribute: Attribute, is_narrow: bool) -> Sql:
    name, digits = column(attribute.id), decimal_of(attribute.type)
    read = cast(name, decimal_type(INT64_DIGITS, digits[1])) if digits and is_narrow else ""
    return Sql(name, attribute.type, narrow=read)


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all in it, in pre-order."""
    stack = [expression]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def expressions(node: Node) -> Iterator[Expression]:
    """All that a node has."""
    args = node.args
    found: list[Expression | int | str | None] = [*args.expressions, args.condition, *args.keys, *args.partition]
    found += [each.child for each in args.order]
    found += [each for listed in args.projections for each in listed]
    found.append(args.limit)
    return (each for each in found if isinstance(each, Expression))


def subqueries(node: Node) -> set[int]:
    """Roots of the plans that its expressions name; they are behind its inputs among its children."""
    if len(node.children) <= INPUTS.get(node.operator, 1):
        return set()
    return {each.plan for expression in expressions(node) for each in walk(expression) if each.plan is not None}


def conjuncts(condition: Expression | None) -> list[Expression]:
    if condition is None:
        return []
    if condition.kind == "And":
        return [each for child in condition.children for each in conjuncts(child)]
    return [condition]


def implied(conditions: Iterable[Expression]) -> frozenset[str]:
    """What holds wherever these conditions do: that columns are not null. Catalyst adds it to filters, for joins above
    too; DuckDB takes a fifth of the rows to be left by each (cardinality_estimator.hpp: DEFAULT_SELECTIVITY), and
    orders joins by that.
    """
    compared = (
        child
        for each in conditions
        if each.kind in OF_NO_NULL
        for child in (each.children[:1] if each.kind in ("In", "InSet") else each.children)
        if child.kind == "AttributeReference"
    )
    return frozenset(f"({column(each.fields['id'])} IS NOT NULL)" for each in compared)


def without(rows: Rows, conditions: Container[str]) -> Rows:
    """The rows with some that these conditions would leave out: what is above leaves them out as well."""
    opened = rows.opened
    where = tuple(each for each in opened.where if each not in conditions)
    return rows if where == opened.where else replace(opened, where=where)


def result_of(expression: Expression) -> tuple[str, Expression]:
    """Id and value of what a list names."""
    if expression.kind == "Alias" and "id" in expression.fields:
        return expression.fields["id"], expression.children[0]
    if expression.kind == "AttributeReference":
        return expression.fields["id"], expression
    raise Unproven("NOT_IN_TABLE", f"{expression.kind} without a name")


def relation(making: Making) -> Rows:
    node, args = making.node, making.args
    if not args.files:
        raise Unproven("NOT_IN_TABLE", f"{node.operator} without files")
    apart = {each for each in args.partition if isinstance(each, str)}
    known = [
        each
        for each in node.output
        if each.id in making.known.read and (each.type in ENGINE_TYPES or decimal_of(each.type))
    ]
    columns = tuple(each.name for each in known if each.name not in apart)
    name = f"t{node.id}"
    making.tables[name] = RouteTable(name, node.id, columns, tuple(each.name for each in known if each.name in apart))
    quoted = {each.id: Sql('"' + each.name.replace('"', '""') + '"', each.type) for each in known}
    return making.from_item(quoted, name)


def local_relation(making: Making) -> Rows:
    listed, output = making.args.rows, making.node.output
    if len(listed) > MOST_ROWS or not output:
        raise Unproven("LOCAL_TOO_LARGE", f"{len(listed)} rows")
    if not listed:
        nulls = {each.id: Sql(cast("NULL", engine_type(each.type)), each.type) for each in output}
        made = making.select(nulls, where=["false"])
        return replace(made, items=("(VALUES (true)) AS v(nothing)",), exposed=frozenset({"nothing"}))
    texts = []
    for row in listed:
        values = [making.sql(each) for each in row]
        if [each.type for each in values] != [each.type for each in output]:
            raise Unproven("UNPROVEN_TYPE", "a local relation")
        texts.append(f"({', '.join(each.text for each in values)})")
    names = ", ".join(column(each.id) for each in output)
    columns = {each.id: Sql(column(each.id), each.type) for each in output}
    return making.from_item(columns, f"(VALUES {', '.join(texts)}) AS v({names})")


def project(making: Making) -> Rows:
    rows = making.only()
    columns, moved = _listed(making, rows)
    renamed = {column(before): column(after[0]) for before, after in moved.items()}
    order = tuple(replace(each, column=renamed.get(each.column, each.column)) for each in rows.order)
    made = making.select(columns, rows, unique=_renamed(rows.unique, moved), order=order, disorder=rows.disorder)
    more = tuple(name for name in made.names if name not in {column(each.id) for each in made.output})
    return replace(made, columns=(*made.columns, *more))


def _listed(making: Making, rows: Rows) -> tuple[dict[str, Sql], dict[str, list[str]]]:
    """The columns of a list of expressions, and by attribute the names under which its values go on."""
    columns: dict[str, Sql] = {}
    moved: dict[str, list[str]] = defaultdict(list)
    for item in making.args.expressions:
        name, value = result_of(item)
        columns[name] = making.sql(value, rows)
        if value.kind == "AttributeReference":
            moved[value.fields["id"]].append(name)
    return columns, moved


def _renamed(unique: Iterable[frozenset[str]], moved: Mapping[str, list[str]]) -> frozenset[frozenset[str]]:
    """Columns that no two rows have equal values in, under each of the names that these go on under."""
    found = (product(*(moved[each] for each in keys)) for keys in unique if keys <= moved.keys())
    return frozenset(frozenset(names) for ways in found for names in islice(ways, MOST_NAMES))


def keep(making: Making) -> Rows:
    if making.args.condition is None:
        raise Unproven("NOT_IN_TABLE", "Filter without a condition")
    (below,) = making.inputs
    while making.known.nodes[below].operator in ("Filter", "Project"):
        below = making.known.nodes[below].children[0]
    files = making.known.nodes[below].args.files
    return _where(making, making.only(), making.args.condition, _folder(files[0].path) if files else None)


def _folder(path: str) -> str:
    """Of a table.

    >>> _folder("/t/day=1/part-0.parquet")
    '/t'
    """
    folders = path.split("/")[:-1]
    while folders and "=" in folders[-1]:
        folders.pop()
    return "/".join(folders)


def _where(making: Making, rows: Rows, condition: Expression, folder: str | None = None) -> Rows:
    """Rows for which it is true. Where it may raise, it is computed of each row first.

    :param folder: of files, parts of which Spark may skip by it
    """
    found = making.sql(condition, rows)
    if found.raises:
        name = f"b{making.node.id}"
        rows = _computed(making, rows, {name: found.text})
        parts, texts = [], [name]
    else:
        parts = conjuncts(condition)
        texts = [making.sql(each, rows).text for each in parts]
    guards = _guards(making, rows, condition, " AND ".join(texts), folder) if folder is not None else []
    return without(making.over(rows, [*texts, *guards]), implied(parts))


def _guards(making: Making, rows: Rows, condition: Expression, true: str, folder: str) -> list[str]:
    """Conditions that raise on a row which Spark may have lost: it skips parts of files by minima, maxima and lists of
    values. Writers take these without NaN, and in them zeros of both signs are not equal. All other values are told, so
    that what holds one for which the condition is true is not skipped. Spark pushes comparisons of columns with what
    has none down to files, those of two columns not.

    :param true: the condition
    """
    names = {each.id: f"{each.name} in {folder}" for each in rows.output}
    found: dict[str, list[str]] = defaultdict(list)
    for each in walk(condition):
        if each.kind not in COMPARISONS:
            continue
        others = [child for child in each.children if not _reads(child)]
        for child in each.children:
            if child.kind == "AttributeReference" and child.type in FLOATING and others:
                name = names[child.fields["id"]]
                if name in making.known.untold:
                    raise Unproven(UNTOLD, name)
                found[name] += [skipped for other in others for skipped in _skipped(making, rows, child, other)]
    return [
        unless(f"({' OR '.join(dict.fromkeys(some))}) AND {true}", f"{UNTOLD} {name}", "true", "BOOLEAN")
        for name, some in found.items()
    ]


def _skipped(making: Making, rows: Rows, compared: Expression, other: Expression) -> Iterator[str]:
    """Where a row may be lost by comparing its value with another, that has no columns."""
    value = making.sql(compared, rows).text
    yield f"isnan({value})"
    if other.kind == "Literal":
        if "value" not in other.fields:
            return
        number = float(other.fields["value"])
        if isnan(number) or (number == 0 and copysign(1, number) < 0):
            raise Unproven("UNPROVEN_ARGUMENT", f"a filter by {number}")
        if number == 0:
            yield _negative_zero(value)
        return
    text = making.sql(other, rows).text
    yield from (_negative_zero(value), f"isnan({text})", _negative_zero(text))


def _negative_zero(number: str) -> str:
    return f"({number} = 0 AND signbit({number}))"


def _computed(making: Making, rows: Rows, texts: Mapping[str, str]) -> Rows:
    """The rows with what may raise as columns of their own, by name, computed of each of them."""
    making.raises = True
    columns = (*rows.opened.names, *(f"{text} AS {name}" for name, text in texts.items()))
    tested = making.over(rows, columns=columns, raising=frozenset(texts))
    whole = making.add(tested.materialized(f"y{next(iter(texts))[1:]}"))
    return replace(whole, exposed=whole.exposed | texts.keys())


def aggregate(making: Making) -> Rows:
    """Where only the result's expressions are not in the table, Spark computes them over the functions' values."""
    (number,) = making.inputs
    sets = _grouping_sets(making, making.known.nodes[number])
    rows = sets[0] if sets else making.take(number, lambda below: _all_read(making, below))
    grouped: dict[str, str] = {}
    for key, text in zip(making.args.keys, making.keys(making.args.keys, rows), strict=True):
        if key.kind != "AttributeReference":
            raise Unproven("NOT_IN_TABLE", f"groups by {key.kind}")
        grouped[key.fields["id"]] = text
    calls = [each for item in making.args.expressions for each in walk(item) if each.kind == "AggregateExpression"]
    if not grouped and not calls:
        raise Unproven("NOT_IN_TABLE", "Aggregate of one group without functions")
    behind = f" GROUP BY {sets[1] if sets else ', '.join(grouped.values())}" if grouped else ""
    try:
        columns, moved = _listed(making, rows)
    except Unproven:
        _finished_in_spark(making, rows, grouped, calls, behind)
        raise
    made = making.select(columns, rows, behind=behind)
    raising = frozenset(column(each.id) for each in made.output) if rows.raising else made.raising
    unique = _renamed([frozenset(grouped)], moved)
    return replace(made, unique=unique, raising=raising, raises=made.raises or bool(raising))


def _grouping_sets(making: Making, expand: Node) -> tuple[Rows, str] | None:
    """What is behind GROUP BY where the input is an Expand for grouping sets, and the rows that these are of. An Expand
    has each row once a set, with null for columns that are not in it, and a number of the set. DuckDB reads it once.

    Worked example: of (k, v, 0) and (null, v, 1), grouped by the first and the third, it is
    GROUPING SETS ((k), ()) HAVING count(*) > 0, as no set has a group of no rows in Spark.
    """
    ways = expand.args.projections
    keys = {each.fields.get("id", "") for each in making.args.keys}
    calls = [each for item in making.args.expressions for each in walk(item) if each.kind == "AggregateExpression"]
    # Functions see what a column is in its set; DuckDB's do not.
    read = {each.fields.get("id", "") for call in calls for each in walk(call) if each.kind == "AttributeReference"}
    if (
        expand.operator != "Expand"
        or not ways
        or keys & read
        or any(each.fields.get("isDistinct") != "false" for each in calls)
    ):
        return None
    listed: list[Expression] = []
    output: list[Attribute] = []
    absent: dict[str, list[bool]] = {}
    numbers: list[tuple[Attribute, tuple[Expression, ...]]] = []
    for attribute, values in zip(expand.output, zip(*ways, strict=True), strict=True):
        is_null = [each.kind == "Literal" and "value" not in each.fields for each in values]
        there = [each for each, null in zip(values, is_null, strict=True) if not null]
        if attribute.id in keys and not any(is_null) and all(each.kind == "Literal" for each in values):
            numbers.append((attribute, values))
            continue
        if not there or there[0].kind != "AttributeReference" or any(each != there[0] for each in there):
            return None
        if attribute.id in keys:
            absent[attribute.id] = is_null
        elif any(is_null):
            return None
        output.append(attribute)
        listed.append(Expression("Alias", attribute.type, children=(there[0],), fields={"id": attribute.id}))
    # The bits of GROUPING: the last column has the lowest.
    masks = [sum(null[way] << at for at, null in enumerate(reversed(absent.values()))) for way in range(len(ways))]
    if len(numbers) != 1 or len(set(masks)) < len(masks) or not absent:
        return None
    rows = making.add(
        project(Making(making.known, Node(expand.id, "Project", expand.children, tuple(output), Args(tuple(listed)))))
    )
    number, values = numbers[0]
    told = " ".join(f"WHEN {mask} THEN {making.sql(each).text}" for mask, each in zip(masks, values, strict=True))
    columns = [column(each) for each in absent]
    scope = making.scope(rows)
    scope[number.id] = Sql(f"(CASE GROUPING({', '.join(columns)}) {told} END)", number.type)
    sets = (
        ", ".join(each for each, null in zip(columns, absent.values(), strict=True) if not null[way])
        for way in range(len(ways))
    )
    return rows, f"GROUPING SETS ({', '.join(f'({each})' for each in sets)}) HAVING count(*) > 0"


def _all_read(making: Making, below: Rows) -> bool:
    """Whether the aggregate evaluates what may raise in its input in every row: as a key, or to add it up."""
    read = {each.fields.get("id") for each in making.args.keys if each.kind == "AttributeReference"}
    for item in making.args.expressions:
        for each in walk(item):
            if each.kind == "AggregateExpression" and each.fields.get("filter") != "true":
                function = each.children[0]
                if function.kind in ("Sum", "Average"):
                    read |= {arg.fields.get("id") for arg in function.children if arg.kind == "AttributeReference"}
    return below.raising <= {column(each) for each in read if each}


def _finished_in_spark(
    making: Making, rows: Rows, grouped: Mapping[str, str], calls: list[Expression], behind: str
) -> None:
    """Keys and functions alone. Of a decimal average also its sum and its count do, which Spark divides."""
    types = {key.fields["id"]: key.type for key in making.args.keys}
    told = [RouteColumn(each, types[each]) for each in grouped]
    listed = [named(text, column(each)) for each, text in grouped.items()]
    opened = rows.opened
    finish: list[FinishedFunction] = []
    raising = bool(rows.raising)
    try:
        for at, call in enumerate(calls):
            try:
                parts = [making.sql(call, rows)]
            except Unproven:
                parts = [making.sql(each, rows) for each in _buffers(call)]
            places = tuple(range(len(told), len(told) + len(parts)))
            finish.append(FinishedFunction(at, places, len(parts) > 1))
            listed += [f"{each.text} AS f{place}" for each, place in zip(parts, places, strict=True)]
            told += [RouteColumn("", each.type) for each in parts]
            raising |= any(each.raises for each in parts)
    except Unproven:
        return
    if not calls:
        return
    found = Rows(
        tuple(listed),
        opened.items,
        opened.exposed,
        rows.output,
        opened.where,
        behind,
        tuple(making.tables.values()),
        dict(making.shared),
        frozenset() if grouped else frozenset({frozenset()}),
        raises=raising or making.raises,
    )
    making.known.finished[making.node.id] = Finished(found, tuple(told), tuple(finish))


def _buffers(call: Expression) -> tuple[Expression, Expression]:
    """Sum and count, of which Spark's average of decimals is made (Average.scala: `sumDataType`, `count`)."""
    function = call.children[0]
    digits = decimal_of(function.children[0].type) if function.children else None
    if function.kind != "Average" or digits is None:
        raise Unproven("NOT_IN_TABLE", function.kind)
    kind = decimal_type(min(MAX_PRECISION, digits[0] + 10), digits[1])
    whole = Expression("Sum", kind, children=function.children, fields=function.fields)
    count = Expression("Count", "BIGINT", nullable=False, children=function.children)
    return _called(call, whole), _called(call, count)


def _called(call: Expression, function: Expression) -> Expression:
    return Expression(call.kind, function.type, function.nullable, (function, *call.children[1:]), call.fields)


def join(making: Making) -> Rows:
    left, right = map(making.take, making.inputs)
    if not {each.id for each in left.output}.isdisjoint(each.id for each in right.output):
        raise Unproven("ATTRIBUTE_CLASH", "both sides of a join")
    if not left.opened.exposed.isdisjoint(right.opened.exposed):
        # Each side can have columns for itself that are the other's output.
        left, right = left.closed, right.closed
    kind, condition = making.args.kind, making.args.condition
    parts = conjuncts(condition)
    if kind == "Inner" and condition is not None and making.sql(condition, left, right).raises:
        return _joined_then_tested(making, parts, left, right)
    on = making.condition(condition, left, right) if condition is not None else "true"
    if kind in ("Inner", "LeftSemi", "RightOuter"):
        left = without(left, implied(parts))
    if kind in ("Inner", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin"):
        right = without(right, implied(parts))
    sides = passed(left), passed(right)
    if kind in ("Inner", "Cross"):
        return making.select(sides[0] | sides[1], left, right, where=[] if condition is None else [on])
    pair = null_aware(condition) if kind == "LeftAnti" else None
    if pair is not None:
        outer, inner = _sides(making, pair, left, right)
        where = f"{outer} NOT IN (SELECT {inner} FROM {right.source})"
        return making.select(sides[0], left, where=[where], unique=left.unique)
    # Without equal keys DuckDB compares each row with each, or has no such join.
    equal = [each.kind in ("EqualTo", "EqualNullSafe") for each in parts]
    if not any(equal) or (kind == "FullOuter" and not all(equal)):
        raise Unproven("NOT_IN_TABLE", f"{kind} join without equal keys")
    if kind in OUTER:
        return making.from_item(sides[0] | sides[1], f"({left.source} {OUTER[kind]} JOIN {right.source} ON {on})")
    if kind in ("LeftSemi", "LeftAnti"):
        word = "SEMI" if kind == "LeftSemi" else "ANTI"
        return making.from_item(sides[0], f"({left.source} {word} JOIN {right.source} ON {on})", unique=left.unique)
    if kind == "ExistenceJoin" and making.args.exists is not None:
        # Neither is null, in Spark and here.
        exists = Sql(f"EXISTS (SELECT 1 FROM {right.source} WHERE {on})", "BOOLEAN")
        return making.select(sides[0] | {making.args.exists: exists}, left, unique=left.unique)
    raise Unproven("NOT_IN_TABLE", f"{kind} join")


def _joined_then_tested(making: Making, parts: Sequence[Expression], left: Rows, right: Rows) -> Rows:
    """Spark evaluates the rest of a condition, in its order, on pairs with equal keys."""
    keys = [each for each in parts if each.kind in ("EqualTo", "EqualNullSafe")]
    if not keys:
        raise Unproven("MAY_RAISE", "a join without equal keys")
    on = []
    computed: tuple[dict[str, str], dict[str, str]] = {}, {}
    for at, each in enumerate(keys):
        if making.sql(each, left, right).raises:
            on.append(_keyed(making, each, left, right, at, computed))
        else:
            on.append(making.condition(each, left, right))
    left, right = (
        _computed(making, *side) if side[1] else side[0] for side in zip((left, right), computed, strict=True)
    )
    joined = making.select(passed(left) | passed(right), left, right, where=on)
    rest = [each for each in parts if each not in keys]
    if not rest:
        return joined
    return _where(making, joined, reduce(lambda one, other: Expression("And", "BOOLEAN", children=(one, other)), rest))


def _keyed(
    making: Making, equal: Expression, left: Rows, right: Rows, at: int, computed: Sequence[dict[str, str]]
) -> str:
    """The condition on the keys; those that may raise are to be `computed` of each row of their side."""
    if equal.kind != "EqualTo" or FLOATING & {each.type for each in equal.children}:
        raise Unproven("MAY_RAISE", equal.kind)
    one, other = equal.children
    if not _reads(one) <= {each.id for each in left.output}:
        one, other = other, one
    texts = []
    for number, rows, key in ((0, left, one), (1, right, other)):
        found = making.sql(key, rows)
        name = f"b{making.node.id}{'lr'[number]}{at}"
        if found.raises:
            computed[number][name] = found.text
        texts.append(name if found.raises else found.text)
    return f"({texts[0]} = {texts[1]})"


def _reads(expression: Expression) -> set[str]:
    return {each.fields["id"] for each in walk(expression) if each.kind == "AttributeReference"}


OUTER = {"LeftOuter": "LEFT", "RightOuter": "RIGHT", "FullOuter": "FULL"}


def null_aware(condition: Expression | None) -> tuple[Expression, Expression] | None:
    """Both sides of `a = b OR (a = b) IS NULL`, as Spark writes NOT IN: a row stays where that is true for no row of
    the right, which is where NOT IN is true.
    """
    if condition is None or condition.kind != "Or":
        return None
    equal, absent = condition.children
    if equal.kind != "EqualTo" or absent.kind != "IsNull" or absent.children != (equal,):
        return None
    one, other = equal.children
    return one, other


def _sides(making: Making, pair: tuple[Expression, Expression], left: Rows, right: Rows) -> tuple[str, str]:
    """Which of both is the left's."""
    one, other = pair
    try:
        return making.condition(one, left), making.condition(other, right)
    except Unproven:
        return making.condition(other, left), making.condition(one, right)


def union(making: Making) -> Rows:
    output = making.node.output
    branches: list[str] = []
    for number in making.inputs:
        rows = making.take(number)
        before = making.known.nodes[number].output
        equal = [each.type for each in before] == [each.type for each in output]
        if not equal or not {each.id for each in before} <= {each.id for each in rows.output}:
            raise Unproven("UNPROVEN_TYPE", "a union")
        listed = (named(column(one.id), column(other.id)) for one, other in zip(before, output, strict=True))
        branches.append(f"SELECT {', '.join(listed) or ANY} FROM {rows.source}")
    columns = {each.id: Sql(column(each.id), each.type) for each in output}
    return making.from_item(columns, f"({' UNION ALL '.join(branches)})")


def expand(making: Making) -> Rows:
    (number,) = making.inputs
    rows = making.add(making.known.of(number).materialized(f"x{number}"))
    output = making.node.output
    branches: list[str] = []
    raising = False
    for listed in making.args.projections:
        values = [making.sql(each, rows) for each in listed]
        if [each.type for each in values] != [each.type for each in output]:
            raise Unproven("UNPROVEN_TYPE", "grouping sets")
        raising |= any(each.raises for each in values)
        texts = (named(each.text, column(to.id)) for each, to in zip(values, output, strict=True))
        branches.append(f"SELECT {', '.join(texts) or ANY} FROM {rows.source}")
    columns = {each.id: Sql(column(each.id), each.type, raising) for each in output}
    return making.from_item(columns, f"({' UNION ALL '.join(branches)})")


def window(making: Making) -> Rows:
    rows = making.only()
    columns = passed(rows)
    for each in making.args.expressions:
        name, value = result_of(each)
        if value.kind != "WindowExpression":
            raise Unproven("NOT_IN_TABLE", value.kind)
        function = value.children[0].kind
        if function == "RowNumber":
            columns[name] = Sql(f"CAST({_ranked(making, rows, function)} AS INTEGER)", "INT")
        else:
            columns[name] = making.sql(_up_to_peers(value, rows), rows)
    return making.select(columns, rows, unique=rows.unique)


def _up_to_peers(window: Expression, rows: Rows) -> Expression:
    """Where no two rows of a partition have equal keys, all rows up to this one are those up to its peers."""
    function, specification = window.children
    if not specification.children:
        return window
    *inputs, frame = specification.children
    keys = {
        each.fields.get("id") for key in inputs for each in (key, *key.children) if each.kind == "AttributeReference"
    }
    if frame.fields.get("frameType", "").removesuffix("$") != "RowFrame" or not any(u <= keys for u in rows.unique):
        return window
    peers = replace(frame, fields={**frame.fields, "frameType": "RangeFrame"})
    return replace(window, children=(function, replace(specification, children=(*inputs, peers))))


def _ranked(making: Making, rows: Rows, kind: str) -> str:
    """A rank is the same for rows with equal keys; a number is not."""
    partition = _expressions(making.args.partition)
    keys = making.keys(partition, rows)
    terms = making.terms(making.args.order, rows)
    if kind == "RowNumber":
        by = {each.fields.get("id") for each in (*partition, *(key.child for key in making.args.order))}
        if not any(unique <= by for unique in rows.unique):
            raise Unproven("UNDETERMINED", "a row's number among equal ones")
    return f"{RANKS[kind]}() OVER ({'PARTITION BY ' if keys else ''}{', '.join(keys)} ORDER BY {', '.join(terms)})"


def _expressions(found: Iterable[Expression | str]) -> list[Expression]:
    return [each for each in found if isinstance(each, Expression)]


def window_group_limit(making: Making) -> Rows:
    """Rows of the first ranks of their partition, which the rank above it would be asked for anyway."""
    rows = making.only()
    kind, size = making.args.rank, limit_of(making.node)
    if kind not in RANKS or size is None:
        raise Unproven("NOT_IN_TABLE", f"the first rows by {kind}")
    return making.over(rows, behind=f" QUALIFY {_ranked(making, rows, kind)} <= {size}")


def sort(making: Making) -> Rows:
    """The order is seen at the top of the statement, and by a limit."""
    rows = making.only()
    if not making.args.whole:
        return replace(rows, order=(), disorder=Unproven("UNDETERMINED", "a sort of each partition"))
    more: list[str] = []
    order: list[Key] = []
    for at, each in enumerate(making.args.order):
        try:
            text = making.sort_key(each.child, rows)
        except Unproven as refusal:
            return replace(rows, order=(), disorder=refusal)
        plain = each.child.kind == "AttributeReference" and each.child.type not in FLOATING
        name = text if plain else f"k{making.node.id}_{at}"
        more += [f"{text} AS {name}"] * (name != text)
        order.append(Key(name, each.ascending, each.nulls_first))
    found = replace(rows.opened, order=(), disorder=None)
    return making.over(found, columns=(*found.names, *more), order=tuple(order))


def limit(making: Making) -> Rows:
    """The first rows of an order: which these are has to be determined, or to be looked at when they are there."""
    known, node = making.known, making.node
    (number,) = making.inputs
    below = known.nodes[number]
    size = limit_of(node)
    if below.operator != "LocalLimit" or size is None or limit_of(below) != size:
        raise Unproven("UNDETERMINED", "a limit of each partition")
    rows = making.take(below.children[0])
    if frozenset() in rows.unique and size > 0:
        return making.over(rows)
    rows.needs_order()
    if not rows.order or size < 1:
        raise Unproven("UNDETERMINED", "a limit without an order")
    if not rows.determined:
        known.limits[node.id] = (rows, size)
        raise Unproven("UNDETERMINED", "a limit among equal keys")
    terms = ", ".join(each.term for each in rows.order)
    return making.over(rows, behind=f" ORDER BY {terms} LIMIT {size}")


def limit_of(node: Node) -> int | None:
    """The number of a limit, if that is a literal."""
    size = node.args.limit
    if isinstance(size, Expression) and size.kind == "Literal" and size.type == "INT":
        return int(size.fields["value"]) if "value" in size.fields else None
    return size if isinstance(size, int) else None


def local_limit(making: Making) -> Rows:
    raise Unproven(BELOW, "asked for with the limit above it")


OPERATORS: Mapping[str, Callable[[Making], Rows]] = {
    "LogicalRelation": relation,
    "LocalRelation": local_relation,
    "Project": project,
    "Filter": keep,
    "Aggregate": aggregate,
    "Join": join,
    "Union": union,
    "Expand": expand,
    "Window": window,
    "WindowGroupLimit": window_group_limit,
    "Sort": sort,
    "GlobalLimit": limit,
    "LocalLimit": local_limit,
}
"""By Catalyst's class."""
