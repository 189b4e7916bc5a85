"""Typed plans to statements, run by DuckDB itself over small tables."""

from __future__ import annotations

from typing import Any

import pytest

from spark_regions.platforms.duckdb import TABLE
from spark_regions.platforms.duckdb.rows import Key
from spark_regions.platforms.duckdb.statement import SKIPPING, Statement, Statements
from spark_regions.platforms.duckdb.text import UNTOLD
from spark_regions.platforms.equivalents import Unproven
from spark_regions.platforms.typed import Args, Attribute, Expression, Node, SortKey, SourceFile, TypedPlan

duckdb = pytest.importorskip("duckdb")

FILE = SourceFile("/orders.parquet", 1000, 0)
INT, BIGINT, STRING, BOOLEAN = "INT", "BIGINT", "STRING", "BOOLEAN"
K, V, S = Attribute("1", "k", INT), Attribute("2", "v", INT), Attribute("3", "s", STRING)
K2, W = Attribute("11", "k", INT), Attribute("12", "w", INT)
ROWS = [(1, 10, "a"), (1, 20, "b"), (2, 20, "b"), (2, None, "c"), (None, 5, None), (None, 5, None)]
OTHER = [(1, 100), (3, 300), (None, 900)]
DATA = {"orders": ("k INTEGER, v INTEGER, s VARCHAR", ROWS), "other": ("k INTEGER, w INTEGER", OTHER)}


def ref(attribute: Attribute) -> Expression:
    return Expression("AttributeReference", attribute.type, fields={"id": attribute.id})


def alias(name: str, value: Expression) -> Expression:
    return Expression("Alias", value.type, children=(value,), fields={"id": name, "name": "x"})


def literal(value: Any, data_type: str = INT) -> Expression:
    return Expression("Literal", data_type, fields={} if value is None else {"value": str(value)})


def call(kind: str, data_type: str, *children: Expression, **fields: str) -> Expression:
    return Expression(kind, data_type, children=children, fields=fields)


def function(kind: str, data_type: str, *children: Expression, **fields: str) -> Expression:
    return call(
        "AggregateExpression",
        data_type,
        call(kind, data_type, *children, **fields),
        mode="Complete",
        isDistinct="false",
    )


def total(attribute: Attribute) -> Expression:
    return function("Sum", BIGINT, ref(attribute), evalMode="ANSI")


def count() -> Expression:
    return function("Count", BIGINT, literal(1))


def key(attribute: Attribute, ascending: bool = True, nulls_first: bool = True) -> SortKey:
    return SortKey(ref(attribute), ascending, nulls_first)


def equal(one: Attribute, other: Attribute) -> Expression:
    return call("EqualTo", BOOLEAN, ref(one), ref(other))


def scan(number: int, table: str = "orders", *output: Attribute) -> Node:
    found = output or ((K, V, S) if table == "orders" else (K2, W))
    return Node(number, "LogicalRelation", (), found, Args(files=(FILE,), columns=(table,)))


def node(number: int, operator: str, children: tuple[int, ...], output: tuple[Attribute, ...], **args: Any) -> Node:
    return Node(number, operator, children, output, Args(**args))


def limited(number: int, size: int, child: int, output: tuple[Attribute, ...]) -> tuple[Node, Node]:
    return (
        node(number, "GlobalLimit", (number + 1,), output, limit=literal(size)),
        node(number + 1, "LocalLimit", (child,), output, limit=literal(size)),
    )


def statements(*nodes: Node) -> Statements:
    return Statements(TypedPlan(nodes), TABLE)


def run(statement: Statement, *nodes: Node, data: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    tables = {each.id: each.args.columns[0] for each in nodes if each.args.columns}
    connection = duckdb.connect(":memory:")
    connection.execute(f"SET disabled_optimizers = '{','.join(statement.disabled)}'")
    for table in statement.tables:
        columns, rows = {**DATA, **(data or {})}[tables[table.node]]
        connection.execute(f"CREATE TABLE {table.name} ({columns})")
        for row in rows:
            connection.execute(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(row))})", row)
    return connection.execute(statement.sql).fetchall()


def rows(*nodes: Node, root: int = 0, **more: Any) -> list[tuple[Any, ...]]:
    return run(statements(*nodes).cut(root), *nodes, **more)


def bag(found: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, found))


def refused(*nodes: Node, root: int = 0) -> str:
    with pytest.raises(Unproven) as raised:
        statements(*nodes).cut(root)
    return raised.value.code


def test_a_project_over_a_filter():
    plus = call("Add", INT, ref(V), literal(1), evalMode="ANSI")
    plan = (
        node(0, "Project", (1,), (K, Attribute("4", "n", INT)), expressions=(ref(K), alias("4", plus))),
        node(1, "Filter", (2,), (K, V, S), condition=call("GreaterThan", BOOLEAN, ref(V), literal(10))),
        scan(2),
    )
    found = statements(*plan).cut(0)
    assert bag(run(found, *plan)) == bag([(1, 21), (2, 21)])
    assert [(each.attribute, each.data_type) for each in found.columns] == [("1", INT), ("4", INT)]
    assert [(each.name, each.node, each.columns) for each in found.tables] == [("t2", 2, ("k", "v"))]
    assert (found.nodes, found.ordered, found.tied) == (frozenset({0, 1, 2}), False, False)


def test_only_columns_that_something_reads_are_asked_of_the_files():
    plan = (node(0, "Aggregate", (1,), (Attribute("4", "n", BIGINT),), expressions=(alias("4", count()),)), scan(1))
    found = statements(*plan).cut(0)
    assert found.tables[0].columns == ()
    assert run(found, *plan) == [(6,)]
    # One row is in order.
    assert found.ordered


def test_groups_of_null_and_a_sum_with_sparks_type():
    output = (K, Attribute("4", "t", BIGINT))
    plan = (node(0, "Aggregate", (1,), output, keys=(ref(K),), expressions=(ref(K), alias("4", total(V)))), scan(1))
    assert bag(rows(*plan)) == bag([(1, 30), (2, 20), (None, 10)])


def test_an_aggregate_whose_result_is_not_in_the_table_is_finished_in_spark():
    unknown = call("Sha1", STRING, total(V))
    output = (K, Attribute("4", "t", STRING))
    plan = (
        node(0, "Project", (1,), output, expressions=(ref(K), ref(output[1]))),
        node(1, "Aggregate", (2,), output, keys=(ref(K),), expressions=(ref(K), alias("4", unknown))),
        scan(2),
    )
    known = statements(*plan)
    found = known.cut(1)
    assert bag(run(found, *plan)) == bag([(1, 30), (2, 20), (None, 10)])
    assert [(each.attribute, each.data_type) for each in found.columns] == [("1", INT), ("", BIGINT)]
    assert [(each.function, each.columns, each.buffers) for each in found.finish] == [(0, (1,), False)]
    with pytest.raises(Unproven) as raised:
        known.cut(0)
    assert raised.value.code == "INPUT_IN_SPARK"


JOINED = [(1, 10, 1, 100), (1, 20, 1, 100)]
LEFT_ALONE = [(2, 20, None, None), (2, None, None, None), *[(None, 5, None, None)] * 2]
RIGHT_ALONE = [(None, None, 3, 300), (None, None, None, 900)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Inner", JOINED),
        ("LeftOuter", JOINED + LEFT_ALONE),
        ("RightOuter", JOINED + RIGHT_ALONE),
        ("FullOuter", JOINED + LEFT_ALONE + RIGHT_ALONE),
    ],
)
def test_joins(kind, expected):
    orders = (K, V)
    plan = (
        node(0, "Join", (1, 2), (*orders, K2, W), kind=kind, condition=equal(K, K2)),
        scan(1, "orders", *orders),
        scan(2, "other"),
    )
    data = {"orders": ("k INTEGER, v INTEGER", [row[:2] for row in ROWS])}
    assert bag(rows(*plan, data=data)) == bag(expected)


@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        ("LeftSemi", equal(K, K2), [(1, 10), (1, 20)]),
        ("LeftAnti", equal(K, K2), [(2, 20), (2, None), (None, 5), (None, 5)]),
        # NOT IN: the null among the others makes it null for all.
        ("LeftAnti", call("Or", BOOLEAN, equal(K, K2), call("IsNull", BOOLEAN, equal(K, K2))), []),
        ("LeftAnti", call("Or", BOOLEAN, equal(K2, K), call("IsNull", BOOLEAN, equal(K2, K))), []),
    ],
)
def test_semi_and_anti_joins(kind, condition, expected):
    plan = (
        node(0, "Project", (1,), (K, V), expressions=(ref(K), ref(V))),
        node(1, "Join", (2, 3), (K, V, S), kind=kind, condition=condition),
        scan(2),
        scan(3, "other"),
    )
    assert bag(rows(*plan)) == bag(expected)


def test_not_in_nothing_keeps_all_rows():
    condition = call("Or", BOOLEAN, equal(V, W), call("IsNull", BOOLEAN, equal(V, W)))
    plan = (
        node(0, "Project", (1,), (V,), expressions=(ref(V),)),
        node(1, "Join", (2, 3), (K, V, S), kind="LeftAnti", condition=condition),
        scan(2),
        node(3, "Filter", (4,), (K2, W), condition=call("GreaterThan", BOOLEAN, ref(W), literal(1000))),
        scan(4, "other"),
    )
    assert len(rows(*plan)) == len(ROWS)


def test_what_exists_is_true_or_false():
    there = Attribute("9", "exists", BOOLEAN)
    plan = (
        node(0, "Project", (1,), (K, there), expressions=(ref(K), ref(there))),
        node(1, "Join", (2, 3), (K, V, S, there), kind="ExistenceJoin", exists="9", condition=equal(K, K2)),
        scan(2),
        scan(3, "other"),
    )
    expected = [(1, True), (1, True), (2, False), (2, False), (None, False), (None, False)]
    assert bag(rows(*plan)) == bag(expected)


def test_inner_joins_with_their_filters_are_one_select_so_that_the_engine_can_order_them():
    k3, w3 = Attribute("21", "k", INT), Attribute("22", "w", INT)
    k4, w4 = Attribute("31", "k", INT), Attribute("32", "w", INT)
    plan = (
        node(0, "Join", (1, 6), (V, W, k3), kind="Inner", condition=equal(K, k3)),
        node(1, "Project", (2,), (K, V, W), expressions=(ref(K), ref(V), ref(W))),
        node(2, "Filter", (3,), (K, V, S, K2, W), condition=call("GreaterThan", BOOLEAN, ref(W), literal(50))),
        node(3, "Join", (4, 5), (K, V, S, K2, W), kind="Inner", condition=equal(K, K2)),
        scan(4),
        scan(5, "other"),
        node(6, "Join", (7, 8), (k3,), kind="LeftSemi", condition=equal(k3, k4)),
        scan(7, "other", k3, w3),
        node(8, "Join", (9, 10), (k4,), kind="LeftOuter", condition=equal(k4, K)),
        scan(9, "other", k4, w4),
        scan(10, "orders"),
    )
    found = statements(*plan).cut(0)
    assert "WHERE (c11 = c1)" in found.sql or "WHERE (c1 = c11)" in found.sql
    assert found.sql.count("JOIN") == 2
    assert bag(run(found, *plan)) == bag([(10, 100, 1), (20, 100, 1)])


@pytest.mark.parametrize("kind", ["Inner", "LeftSemi", "ExistenceJoin"])
def test_sides_that_read_one_relation_are_told_apart(kind):
    """Spark gives attributes other ids only where both sides hand them on."""
    there = Attribute("9", "exists", BOOLEAN)
    output = {"Inner": (K, V), "LeftSemi": (K,), "ExistenceJoin": (K, there)}[kind]
    plan = (
        node(0, "Join", (1, 3), output, kind=kind, exists="9", condition=equal(K, V)),
        node(1, "Project", (2,), (K,), expressions=(ref(K),)),
        scan(2, "few", K, V),
        node(3, "Project", (4,), (V,), expressions=(ref(V),)),
        scan(4, "few", K, V),
    )
    expected = {"Inner": [(5, 5)], "LeftSemi": [(5,)], "ExistenceJoin": [(1, False), (5, True)]}[kind]
    assert bag(rows(*plan, data={"few": ("k INTEGER, v INTEGER", [(1, 5), (5, 7)])})) == bag(expected)


@pytest.mark.parametrize("kind", ["LeftOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin"])
def test_a_join_that_compares_each_row_with_each_stays_in_spark(kind):
    condition = call("LessThan", BOOLEAN, ref(K), ref(K2))
    plan = (node(0, "Join", (1, 2), (K, V, S), kind=kind, condition=condition), scan(1), scan(2, "other"))
    assert refused(*plan) == "NOT_IN_TABLE"


def test_a_union_is_by_position():
    plan = (
        node(0, "Union", (1, 2), (Attribute("21", "k", INT), Attribute("22", "x", INT))),
        scan(1, "other", K2, W),
        scan(2, "other", Attribute("31", "k", INT), Attribute("32", "w", INT)),
    )
    assert bag(rows(*plan)) == bag(OTHER * 2)


def grouping(*told: Expression, sets: str = "kv k v -") -> tuple[Node, ...]:
    """`orders` grouped by `k` and `v`, of which each set names some."""
    k, v, gid = Attribute("7", "k", INT), Attribute("8", "v", INT), Attribute("9", "id", BIGINT)
    ways = tuple(
        (ref(V), *(ref(one) if one.name in names else literal(None) for one in (K, V)), literal(at * 5, BIGINT))
        for at, names in enumerate(sets.split())
    )
    output = (k, v, gid, *(Attribute(str(at), "n", each.type) for at, each in enumerate(told, 50)))
    listed = (ref(k), ref(v), ref(gid), *(alias(str(at), each) for at, each in enumerate(told, 50)))
    above = node(0, "Aggregate", (1,), output, keys=(ref(k), ref(v), ref(gid)), expressions=listed)
    return above, node(1, "Expand", (2,), (V, k, v, gid), projections=ways), scan(2)


def test_grouping_sets_read_the_rows_once():
    plan = grouping(count(), total(V))
    found = statements(*plan).cut(0)
    assert found.sql.count(" FROM t2") == 1
    both = [(1, 10, 0, 1, 10), (1, 20, 0, 1, 20), (2, 20, 0, 1, 20), (2, None, 0, 1, None), (None, 5, 0, 2, 10)]
    one = [(1, None, 5, 2, 30), (2, None, 5, 2, 20), (None, None, 5, 2, 10)]
    other = [(None, 10, 10, 1, 10), (None, 20, 10, 2, 40), (None, None, 10, 1, None), (None, 5, 10, 2, 10)]
    assert bag(run(found, *plan)) == bag([*both, *one, *other, (None, None, 15, 6, 60)])
    assert run(found, *plan, data={"orders": (DATA["orders"][0], [])}) == []


@pytest.mark.parametrize(
    ("told", "sets"),
    [
        ((total(Attribute("8", "v", INT)),), "kv -"),
        ((count(),), "k k"),
        (
            (call("AggregateExpression", BIGINT, call("Count", BIGINT, ref(V)), mode="Complete", isDistinct="true"),),
            "kv -",
        ),
    ],
    ids=["a function of a column in its set", "a set twice", "distinct values"],
)
def test_other_sets_are_made_of_copies_of_the_rows(told, sets):
    found = statements(*grouping(*told, sets=sets)).cut(0)
    assert "GROUPING" not in found.sql and "UNION ALL" in found.sql


def test_the_top_rows_with_what_decides_about_ties():
    plan = (*limited(0, 2, 2, (K, V, S)), node(2, "Sort", (3,), (K, V, S), order=(key(V),), whole=True), scan(3))
    found = statements(*plan).cut(0)
    assert (found.limit, found.tied, found.ordered) == (2, True, True)
    # Null is first, then two equal rows with 5: one of them does as well as the other, but that is not looked at.
    assert [(v, tied) for _, v, _, tied in run(found, *plan)] == [(None, False), (5, True), (5, False)]


def test_rows_in_order():
    plan = (node(0, "Sort", (1,), (K, V, S), order=(key(V, ascending=False, nulls_first=False),), whole=True), scan(1))
    found = statements(*plan).cut(0)
    assert (found.limit, found.tied, found.ordered) == (None, True, True)
    assert [v for _, v, _, _ in run(found, *plan)] == [20, 20, 10, 5, 5, None]
    assert [tied for *_, tied in run(found, *plan)] == [True, False, False, False, False, False]


def test_rows_that_are_told_apart_by_their_keys_have_no_ties():
    output = (K, Attribute("4", "t", BIGINT))
    aggregate = node(3, "Aggregate", (4,), output, keys=(ref(K),), expressions=(ref(K), alias("4", total(V))))
    order = (key(output[1], ascending=False), key(K))
    plan = (*limited(0, 1, 2, output), node(2, "Sort", (3,), output, order=order, whole=True), aggregate, scan(4))
    found = statements(*plan).cut(0)
    assert (found.limit, found.tied, found.ordered) == (None, False, True)
    assert run(found, *plan) == [(1, 30)]


def test_a_limit_below_a_join_has_to_be_determined():
    def joined(order):
        return (
            node(0, "Join", (1, 6), (K, V, S, K2, W), kind="Inner", condition=equal(K, K2)),
            *limited(1, 2, 3, (K, V, S)),
            node(3, "Sort", (4,), (K, V, S), order=order, whole=True),
            scan(4),
            scan(6, "other"),
        )

    known = statements(*joined((key(V),)))
    with pytest.raises(Unproven):
        known.cut(0)
    assert known.refusal(1).code == "UNDETERMINED"
    assert known.cut(1).limit == 2


def test_the_order_outlives_a_projection_without_its_keys():
    plan = (
        *limited(0, 2, 2, (K,)),
        node(2, "Project", (3,), (K,), expressions=(ref(K),)),
        node(3, "Sort", (4,), (K, V, S), order=(key(V, ascending=False, nulls_first=False),), whole=True),
        scan(4),
    )
    assert [(k, tied) for k, tied in rows(*plan)][2:] == [(1, False)]
    assert sorted(k for k, _ in rows(*plan)[:2]) == [1, 2]


def test_by_floating_point_keys_nothing_is_grouped_and_zeros_of_both_signs_are_sorted_as_one():
    x = Attribute("1", "x", "DOUBLE")
    data = scan(1, "orders", x)
    found = statements(node(0, "Sort", (1,), (x,), order=(key(x),), whole=True), data).cut(0)
    assert "CASE WHEN c1 = 0 THEN CAST(0 AS DOUBLE) ELSE c1 END AS k0_0" in found.sql
    assert found.sql.startswith("SELECT c1, tied FROM") and "(ORDER BY k0_0 " in found.sql
    assert refused(node(0, "Aggregate", (1,), (x,), keys=(ref(x),), expressions=(ref(x),)), data) == "FLOAT_KEY"


def test_what_is_undetermined_stays_in_spark():
    output = (K, V, S)
    assert refused(*limited(0, 2, 2, output), scan(2)) == "UNDETERMINED"
    assert refused(node(0, "LocalLimit", (1,), output, limit=literal(1)), scan(1)) == "INPUT_IN_SPARK"
    assert refused(node(0, "Sort", (1,), output, order=(key(V),), whole=False), scan(1)) == "UNDETERMINED"
    assert refused(node(0, "Sample", (1,), output), scan(1)) == "NOT_IN_TABLE"


X = Attribute("8", "x", "DOUBLE")
Y = Attribute("9", "y", "DOUBLE")


def compared(kind: str, *children: Expression) -> Expression:
    return call(kind, BOOLEAN, *children)


def number(text: str) -> Expression:
    return literal(text, "DOUBLE")


NAN, ZERO = float("nan"), -0.0
ABOVE = compared("GreaterThan", ref(X), number("1.0"))
TWICE = call("Multiply", "DOUBLE", ref(X), number("2.0"), evalMode="ANSI")


@pytest.mark.parametrize(
    ("condition", "values", "found"),
    [
        pytest.param(ABOVE, [(2.0, 0.0), (1.0, NAN)], 1, id="other columns may have NaN"),
        pytest.param(ABOVE, [(2.0, 0.0), (NAN, 0.0)], "x", id="NaN is above all"),
        pytest.param(compared("LessThan", ref(X), number("1.0")), [(NAN, 0.0), (ZERO, 0.0)], 1, id="and below none"),
        pytest.param(compared("LessThan", number("1.0"), ref(X)), [(NAN, 0.0)], "x", id="from the right"),
        pytest.param(call("Not", BOOLEAN, compared("EqualTo", ref(X), number("5"))), [(NAN, 0.0)], "x", id="not equal"),
        pytest.param(compared("EqualTo", ref(X), number("0.0")), [(ZERO, 0.0)], "x", id="equal to zero"),
        pytest.param(compared("In", ref(X), number("3"), number("0.0")), [(ZERO, 0.0)], "x", id="among zeros"),
        pytest.param(
            compared("In", ref(X), number("3"), number("0.0")), [(0.0, ZERO), (NAN, 1)], 1, id="the zero itself"
        ),
        pytest.param(
            compared("Or", ABOVE, compared("EqualTo", ref(Y), number("0.0"))),
            [(2.0, ZERO)],
            "y",
            id="either may be true",
        ),
        pytest.param(
            compared("And", ABOVE, call("Not", BOOLEAN, call("IsNaN", BOOLEAN, ref(X)))), [(NAN, 1)], 0, id="no NaN"
        ),
        pytest.param(
            compared("GreaterThan", ref(X), ref(Y)), [(NAN, 1.0)], 1, id="two columns are not compared in files"
        ),
        pytest.param(
            compared("GreaterThan", ref(X), literal(None, "DOUBLE")), [(NAN, 1.0)], 0, id="null is above none"
        ),
        pytest.param(compared("GreaterThan", TWICE, number("1.0")), [(NAN, 1.0)], 1, id="no column"),
    ],
)
def test_a_row_that_spark_may_lose_by_statistics_of_its_file_is_an_error(condition, values, found):
    plan = node(0, "Filter", (1,), (X, Y), condition=condition), scan(1, "numbers", X, Y)
    data = {"numbers": ("x DOUBLE, y DOUBLE", values)}
    if isinstance(found, int):
        assert len(rows(*plan, data=data)) == found
        return
    with pytest.raises(duckdb.Error, match=f"{UNTOLD} {found} in '"):
        rows(*plan, data=data)


@pytest.mark.parametrize("value", ["NaN", "-0.0"])
def test_a_comparison_with_what_statistics_do_not_tell_is_left_to_spark(value):
    condition = compared("GreaterThanOrEqual", ref(X), number(value))
    assert refused(node(0, "Filter", (1,), (X,), condition=condition), scan(1, "numbers", X)) == "UNPROVEN_ARGUMENT"


def test_spark_skips_no_files_by_what_is_computed():
    output = K, Attribute("20", "m", "DOUBLE")
    plan = (
        node(0, "Filter", (1,), output, condition=compared("GreaterThan", ref(output[1]), number("1.0"))),
        node(
            1,
            "Aggregate",
            (2,),
            output,
            keys=(ref(K),),
            expressions=(ref(K), alias("20", function("Max", "DOUBLE", ref(X)))),
        ),
        scan(2, "numbers", K, X),
    )
    assert len(rows(*plan, data={"numbers": ("k INTEGER, x DOUBLE", [(1, NAN), (2, 0.0), (1, 5.0)])})) == 1


def test_columns_that_had_such_values_are_not_compared_again():
    plan = TypedPlan((node(0, "Filter", (1,), (K, X), condition=ABOVE), scan(1, "orders", K, X)))
    assert Statements(plan, TABLE, frozenset({"x in /other"})).cut(0).sql
    with pytest.raises(Unproven, match=UNTOLD):
        Statements(plan, TABLE, frozenset({"x in "})).cut(0)


def ranked(kind: str, order: tuple[SortKey, ...]) -> tuple[Node, ...]:
    return windowed(call(kind, INT), order)


def windowed(function: Expression, order: tuple[SortKey, ...]) -> tuple[Node, ...]:
    """By `k`, over all rows up to this one."""
    rank = Attribute("9", "r", function.type)
    frame = call("SpecifiedWindowFrame", "VOID", call("UnboundedPreceding", "VOID"), call("CurrentRow", "VOID"),
                 frameType="RowFrame")  # fmt: skip
    keys = [
        call("SortOrder", each.child.type, each.child, direction="Ascending", nullOrdering="NullsFirst")
        for each in order
    ]
    specification = call("WindowSpecDefinition", "VOID", ref(K), *keys, frame)
    value = call("WindowExpression", function.type, function, specification)
    output = (K, V, rank)
    return (
        node(0, "Project", (1,), output, expressions=tuple(map(ref, output))),
        node(1, "Window", (2,), (K, V, S, rank), expressions=(alias("9", value),), partition=(ref(K),), order=order),
        scan(2),
    )


def test_ranks_do_not_depend_on_the_order_of_equal_rows():
    expected = [(1, 10, 1), (1, 20, 2), (2, None, 1), (2, 20, 2), (None, 5, 1), (None, 5, 1)]
    assert bag(rows(*ranked("Rank", (key(V),)))) == bag(expected)


def test_numbers_of_rows_do_unless_their_keys_are_unique():
    plan = ranked("RowNumber", (key(V),))
    known = statements(*plan)
    assert known.refusal(1).code == "UNDETERMINED"
    grouped = node(2, "Aggregate", (3,), (K, V), keys=(ref(K), ref(V)), expressions=(ref(K), ref(V)))
    window = node(1, "Window", (2,), (K, V, plan[0].output[2]), expressions=plan[1].args.expressions,
                  partition=(ref(K),), order=(key(V),))  # fmt: skip
    expected = [(1, 10, 1), (1, 20, 2), (2, None, 1), (2, 20, 2), (None, 5, 1)]
    assert bag(rows(plan[0], window, grouped, scan(3))) == bag(expected)


@pytest.mark.parametrize("more", [(), (Attribute("15", "also", INT),)], ids=["once", "under another name before"])
def test_sums_up_to_a_row_do_unless_their_keys_are_unique(more):
    plan = windowed(total(V), (key(V),))
    assert statements(*plan).refusal(1).code == "UNDETERMINED"
    listed = (*(alias(each.id, ref(K)) for each in more), ref(K), ref(V))
    grouped = node(2, "Aggregate", (3,), (*more, K, V), keys=(ref(K), ref(V)), expressions=listed)
    window = node(1, "Window", (2,), (*more, K, V, plan[0].output[2]), expressions=plan[1].args.expressions,
                  partition=(ref(K),), order=(key(V),))  # fmt: skip
    expected = [(1, 10, 10), (1, 20, 30), (2, None, None), (2, 20, 20), (None, 5, 5)]
    assert bag(rows(plan[0], window, grouped, scan(3))) == bag(expected)


def test_the_first_ranks_of_each_partition():
    plan = (
        node(0, "Project", (1,), (K, V), expressions=(ref(K), ref(V))),
        node(1, "WindowGroupLimit", (2,), (K, V, S), partition=(ref(K),), order=(key(V),), rank="Rank", limit=1),
        scan(2),
    )
    assert bag(rows(*plan)) == bag([(1, 10), (2, None), (None, 5), (None, 5)])


def test_a_scalar_subquery_of_one_row():
    most = function("Max", INT, ref(W))
    inside = Expression("ScalarSubquery", INT, plan=3)
    plan = (
        node(0, "Project", (1,), (V,), expressions=(ref(V),)),
        node(1, "Filter", (2, 3), (K, V, S), condition=call("LessThan", BOOLEAN, ref(V), inside)),
        scan(2),
        node(3, "Aggregate", (4,), (Attribute("19", "m", INT),), expressions=(alias("19", most),)),
        scan(4, "other"),
    )
    assert bag(rows(*plan)) == bag([(10,), (20,), (20,), (5,), (5,)])


def test_a_scalar_subquery_of_more_rows_raises_whether_its_value_is_asked_for_or_not():
    less = call("LessThan", BOOLEAN, ref(V), Expression("ScalarSubquery", INT, plan=3))
    plan = (
        node(0, "Project", (1,), (V,), expressions=(ref(V),)),
        node(1, "Filter", (2, 3), (K, V, S), condition=less),
        scan(2),
        scan(3, "other", W),
    )
    other = "k INTEGER, w INTEGER"
    for values, expected in (([(1, 15)], [(10,), (5,), (5,)]), ([(1, None)], []), ([], [])):
        assert bag(rows(*plan, data={"other": (other, values)})) == bag(expected)
    with pytest.raises(duckdb.Error, match="several rows"):
        rows(*plan)
    with pytest.raises(duckdb.Error, match="several rows"):
        rows(*plan, data={"orders": ("k INTEGER, v INTEGER, s VARCHAR", [])})
    assert statements(*plan).cut(0).disabled == SKIPPING


def test_keys_of_a_join_that_may_raise_are_computed_of_each_row():
    one = call("Remainder", INT, literal(10), ref(V), evalMode="ANSI")
    plan = (
        node(0, "Join", (1, 2), (K, V, S, K2, W), kind="Inner", condition=call("EqualTo", BOOLEAN, ref(K2), one)),
        scan(1),
        scan(2, "other"),
    )
    orders = "k INTEGER, v INTEGER, s VARCHAR"
    assert rows(*plan, data={"orders": (orders, [(7, 3, "a"), (8, 4, "b"), (9, None, "c")])}) == [(7, 3, "a", 1, 100)]
    for others in (OTHER, []):
        with pytest.raises(duckdb.Error):
            rows(*plan, data={"orders": (orders, [(7, 3, "a"), (8, 0, "b")]), "other": (DATA["other"][0], others)})


def test_several_keys_of_a_side_may_raise():
    keys = [call("Remainder", INT, literal(at), ref(of), evalMode="ANSI") for at, of in ((10, V), (700, K))]
    both = call("And", BOOLEAN, *(call("EqualTo", BOOLEAN, ref(o), k) for o, k in zip((K2, W), keys, strict=True)))
    join = node(0, "Join", (1, 2), (K, V, S, K2, W), kind="Inner", condition=both)
    plan = join, scan(1), scan(2, "other")
    orders = "k INTEGER, v INTEGER, s VARCHAR"
    assert rows(*plan, data={"orders": (orders, [(600, 3, "a"), (601, 3, "b")])}) == [(600, 3, "a", 1, 100)]
    for wrong in ((0, 3, "a"), (600, 0, "a")):
        with pytest.raises(duckdb.Error):
            rows(*plan, data={"orders": (orders, [wrong])})


def raising(number: int, child: int) -> Node:
    """Divides by `v`, which is null or not, and 0 where it is 5."""
    less = call("Subtract", INT, ref(V), literal(5), evalMode="ANSI")
    value = call("Remainder", INT, ref(V), less, evalMode="ANSI")
    output = (K, Attribute("7", "q", INT))
    return node(number, "Project", (child,), output, expressions=(ref(K), alias("7", value)))


def test_a_condition_that_may_raise_is_computed_of_each_row():
    condition = call("EqualTo", BOOLEAN, call("Remainder", INT, literal(1), ref(V), evalMode="ANSI"), literal(0))
    found = statements(node(0, "Filter", (1,), (K, V, S), condition=condition), scan(1)).cut(0)
    assert found.disabled == SKIPPING
    assert (
        "AS b0, random() AS r FROM" in found.sql
        and "hash(b0, r) IS NOT NULL" in found.sql
        and found.sql.endswith(" FROM y0 WHERE b0)")
    )


@pytest.mark.parametrize(
    "above",
    [
        node(0, "Filter", (1,), (K, Attribute("7", "q", INT)), condition=call("IsNotNull", BOOLEAN, ref(K))),
        node(0, "Project", (1,), (K,), expressions=(ref(K),)),
        node(0, "Aggregate", (1,), (K,), keys=(ref(K),), expressions=(ref(K),)),
        node(0, "Join", (1, 5), (K, Attribute("7", "q", INT)), kind="LeftSemi", condition=equal(K, K2)),
        node(0, "Join", (1, 5), (K, Attribute("7", "q", INT), K2, W), kind="Inner", condition=equal(K, K2)),
        node(0, "Filter", (1,), (K, Attribute("7", "q", INT)), condition=literal("false", BOOLEAN)),
    ],
    ids=["a filter", "nobody reads it", "a group", "a join", "a join that filters what it reads", "no row at all"],
)
def test_what_may_raise_does_whatever_is_above(above):
    plan = (above, raising(1, 2), scan(2), *([scan(5, "other")] if 5 in above.children else []))
    found = statements(*plan).cut(0)
    assert found.disabled == SKIPPING
    with pytest.raises(duckdb.Error):
        run(found, *plan)
    run(found, *plan, data={"orders": ("k INTEGER, v INTEGER, s VARCHAR", ROWS[:4])})


def test_nothing_is_switched_off_where_nothing_raises():
    assert statements(node(0, "Project", (1,), (K,), expressions=(ref(K),)), scan(1)).cut(0).disabled == ()


@pytest.mark.parametrize(
    ("kind", "kept", "count"),
    [
        ("Inner", 0, 2),
        ("LeftSemi", 0, 2),
        ("LeftOuter", 1, 4),
        ("LeftAnti", 1, 2),
        ("RightOuter", 1, 3),
        ("FullOuter", 2, 5),
    ],
)
def test_a_key_that_is_not_null_is_asked_for_where_the_join_does_not_tell(kind, kept, count):
    sides = [
        node(at, "Filter", (at + 1,), output, condition=call("IsNotNull", BOOLEAN, ref(output[0])))
        for at, output in ((1, (K, V, S)), (3, (K2, W)))
    ]
    output = (K, V, S) if kind in ("LeftSemi", "LeftAnti") else (K, V, S, K2, W)
    plan = (node(0, "Join", (1, 3), output, kind=kind, condition=equal(K, K2)), *sides, scan(2), scan(4, "other"))
    found = statements(*plan).cut(0)
    assert (found.sql.count("IS NOT NULL"), len(run(found, *plan))) == (kept, count)


def test_a_column_that_is_compared_is_not_asked_for_again():
    some = call("And", BOOLEAN, call("IsNotNull", BOOLEAN, ref(V)), call("GreaterThan", BOOLEAN, ref(V), literal(15)))
    both = call("And", BOOLEAN, call("IsNotNull", BOOLEAN, ref(K)), some)
    plan = (node(0, "Filter", (1,), (K, V, S), condition=both), scan(1))
    assert statements(*plan).cut(0).sql.count("IS NOT NULL") == 1
    assert len(rows(*plan)) == 2


K3, W3 = Attribute("31", "k", INT), Attribute("32", "w", INT)
"""Of `other`, read once more."""


def joined(first: dict[str, Expression], second: dict[str, Expression], *more: Node) -> tuple[Node, ...]:
    """`other` grouped by `k` twice, and joined to itself.

    :param first: results by attribute
    """
    sides = []
    for number, key, told in ((1, K2, first), (3, K3, second)):
        output = (key, *(Attribute(name, name, each.type) for name, each in told.items()))
        listed = (ref(key), *(alias(name, each) for name, each in told.items()))
        sides.append(node(number, "Aggregate", (number + 1,), output, keys=(ref(key),), expressions=listed))
    join = node(0, "Join", (1, 3), (*sides[0].output, *sides[1].output), kind="Inner", condition=equal(K2, K3))
    scans = scan(2, "other"), scan(4, "other", K3, W3)
    return (join, *sides, *(each for each in scans if each.id not in {one.id for one in more}), *more)


def test_groups_that_the_plan_has_twice_are_computed_once_whatever_each_tells_of_them():
    plan = joined({"41": total(W)}, {"42": count(), "43": total(W3), "44": total(W3)})
    found = statements(*plan).cut(0)
    assert found.sql.count("sum(") == found.sql.count("MATERIALIZED") == len(found.tables) == 1
    assert bag(run(found, *plan)) == bag([(1, 100, 1, 1, 100, 100), (3, 300, 3, 1, 300, 300)])


def test_a_result_that_is_not_in_the_table_is_no_reason_against_the_same_groups_elsewhere():
    first = function("StddevSamp", "DOUBLE", ref(W))
    known = statements(*joined({"41": first}, {"42": total(W3)}))
    assert known.refusal(1).code == "NOT_IN_TABLE"
    assert known.cut(3).sql.count("sum(") == 1


@pytest.mark.parametrize(
    "second",
    [
        node(4, "Filter", (5,), (K3, W3), condition=call("IsNotNull", BOOLEAN, ref(W3))),
        node(4, "LogicalRelation", (), (W3, K3), columns=("other",), files=(FILE,)),
        node(4, "LogicalRelation", (), (K3, W3), columns=("other",), files=(FILE, FILE)),
    ],
    ids=["fewer rows", "another column", "other files"],
)
def test_groups_of_other_rows_are_computed_for_themselves(second):
    plan = joined({"41": total(W)}, {"42": total(W3)}, second, scan(5, "other", K3, W3))
    assert statements(*plan).cut(0).sql.count("sum(") == 2


def test_a_join_of_a_table_to_itself_is_told_by_the_side_that_a_column_is_of():
    def side(number: int, *columns: Attribute) -> tuple[Node, ...]:
        k, w, other_k, other_w, of = columns
        join = node(
            number + 1, "Join", (number + 2, number + 3), columns[:4], kind="Inner", condition=equal(k, other_k)
        )
        scans = scan(number + 2, "other", k, w), scan(number + 3, "other", other_k, other_w)
        return node(number, "Aggregate", (number + 1,), (of,), keys=(ref(of),), expressions=(ref(of),)), join, *scans

    a, b, c, d = (Attribute(str(at), "w" if at % 2 else "k", INT) for at in (50, 51, 52, 53))
    for of, times in ((c, 2), (a, 1)):
        one, other = side(1, K2, W, K3, W3, K2), side(5, a, b, c, d, of)
        join = node(0, "Join", (1, 5), (K2, of), kind="Inner", condition=equal(K2, of))
        assert len(statements(join, *one, *other).cut(0).tables) == 2 * times


def test_a_subquery_that_the_plan_has_twice_is_computed_once():
    def above(number: int, child: int, value: Attribute, plan: int) -> Node:
        mean = Expression("ScalarSubquery", BIGINT, plan=plan)
        greater = call("GreaterThan", BOOLEAN, call("Cast", BIGINT, ref(value), evalMode="ANSI"), mean)
        return node(number, "Filter", (child, plan), (value,), condition=greater)

    def summed(number: int, value: Attribute, name: str) -> Node:
        told = (Attribute(name, "n", BIGINT),)
        return node(number, "Aggregate", (number + 1,), told, expressions=(alias(name, total(value)),))

    union = node(0, "Union", (1, 2), (V,))
    values = V, Attribute("9", "v", INT)
    scans = [scan(3, "orders", K, V, S), scan(4, "orders", Attribute("8", "k", INT), values[1])]
    subqueries = summed(5, W, "41"), scan(6, "other"), summed(7, W3, "42"), scan(8, "other", K3, W3)
    plan = (union, above(1, 3, values[0], 5), above(2, 4, values[1], 7), *scans, *subqueries)
    found = statements(*plan).cut(0)
    assert found.sql.count("sum(") == 1
    assert bag(run(found, *plan, data={"other": (DATA["other"][0], [(1, 15)])})) == bag([(20,)] * 4)


def test_the_zone_is_told_where_values_depend_on_it():
    at = Attribute("1", "at", "TIMESTAMP")
    plan = TypedPlan((scan(0, "orders", at),), zone="Europe/Berlin")
    assert Statements(plan, TABLE).cut(0).zone == "Europe/Berlin"
    assert statements(scan(0, "other")).cut(0).zone == ""


def test_names_of_columns_are_quoted():
    odd = Attribute("1", 'a "b"', INT)
    found = statements(scan(0, "orders", odd)).cut(0)
    assert '"a ""b""" AS c1' in found.sql
    assert Key("c1", True, False).term == "c1 ASC NULLS LAST"
