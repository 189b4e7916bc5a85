"""A query that another engine has a part of: what the driver is told, and what is learned of what it tells."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from wire_client import decide, executed, frame, node, report

from spark_regions.errors import InvalidRequest
from spark_regions.planner import engines
from spark_regions.platforms.typed import Args, Attribute, Expression, Node, SourceFile, TypedPlan

K, X, K2 = Attribute("1", "k", "INT"), Attribute("2", "x", "INT"), Attribute("3", "k", "INT")
FILE = SourceFile("/data.parquet", 10_000_000, 0)


def ref(attribute: Attribute) -> Expression:
    return Expression("AttributeReference", attribute.type, fields={"id": attribute.id})


def plan(**aggregate: Any) -> str:
    keys = {"keys": (ref(K), ref(X)), "expressions": (ref(K), ref(X))} | aggregate
    on = Expression("EqualTo", "BOOLEAN", children=(ref(K), ref(K2)))
    nodes = (
        Node(0, "Aggregate", (1,), (K, X), Args(**keys)),
        Node(1, "Join", (2, 3), (K, X, K2), Args(kind="Inner", condition=on)),
        Node(2, "LogicalRelation", (), (K, X), Args(files=(FILE,))),
        Node(3, "LogicalRelation", (), (K2,), Args(files=(FILE,))),
    )
    return msgspec.json.encode(TypedPlan(nodes)).decode()


def asked(query: int, typed: str | None = None, **confs: Any) -> dict[str, Any]:
    given = {"platforms": "auto", "platformsMaxInputBytes": 10**10, "platformsMaxResultBytes": 10**8, "recycle": False}
    return decide(report(), query, typed=typed or plan(), confs=given | confs)


def ran(query: int, **more: Any) -> dict[str, Any]:
    told = {
        "query": query,
        "node": 0,
        "platform": "duckdb",
        "seconds": 0.9,
        "startSeconds": 0.5,
        "rows": 7,
        "bytes": 56,
    }
    return {"type": "executed"} | executed([], query, routes=[told | more])


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "usable_engines", lambda: ("duckdb",))


def measured(session: Any, query: int = 1) -> None:
    """Spark takes eleven task-seconds."""
    session.decide(asked(query, platforms="off"))
    session.observe({"type": "executed"} | executed(report(), query))


def test_the_driver_gets_a_statement_with_the_names_of_what_it_reads(session):
    measured(session)
    (action,) = session.decide(asked(2))["actions"]
    assert (action["kind"], action["node"], action["platform"], action["reason"]) == ("route", 0, "duckdb", "ENGINE")
    assert [each["attribute"] for each in action["columns"]] == ["1", "2"]
    assert [(each["name"], each["node"], each["columns"]) for each in action["tables"]] == [
        ("t2", 2, ["k", "x"]), ("t3", 3, ["k"]),
    ]  # fmt: skip
    assert "GROUP BY c1, c2" in action["sql"]
    assert action["limitBytes"] == 10**8
    assert action["saving"] < action["instead"] == 5.5
    assert action["deadlineSeconds"] == 30.0


def test_a_statement_may_take_a_few_times_what_spark_takes_however_low_a_guess_of_that_is(session):
    (guessed,) = session.decide(asked(1, platforms="duckdb"))["actions"]
    assert (guessed["reason"], guessed["deadlineSeconds"]) == ("ALWAYS", 30.0)
    assert guessed["instead"] < 1
    session.decide(asked(2, platforms="off"))
    nodes = [each | {"seconds": 60.0} for each in executed(report(), 2)["nodes"]]
    session.observe({"type": "executed"} | executed([], 2) | {"nodes": nodes})
    (known,) = session.decide(asked(3))["actions"]
    assert known["deadlineSeconds"] == pytest.approx(3 * known["instead"], abs=0.01)
    assert known["instead"] > 30


@pytest.mark.parametrize("confs", [{"platforms": "off"}, {"platformsMaxInputBytes": 1}, {"platformsMaxResultBytes": 1}])
def test_not_where_the_user_does_not_want_it(session, confs):
    measured(session)
    assert session.decide(asked(2, **confs))["actions"] == []


def test_not_where_the_engine_is_not_installed_unless_it_is_named(session, monkeypatch):
    monkeypatch.setattr(engines, "usable_engines", tuple)
    measured(session)
    assert session.decide(asked(2))["actions"] == []
    assert len(session.decide(asked(3, platforms="duckdb"))["actions"]) == 1


def test_it_is_only_said_where_plans_are_left_alone(session):
    measured(session)
    answer = session.decide(asked(2) | {"mode": "observe"})
    assert answer["actions"] == []
    assert any(each["code"] == "OBSERVE_ONLY" and "another engine" in each["detail"] for each in answer["declines"])


def test_what_is_not_in_the_table_stays_in_spark_with_its_reason(session):
    typed = plan(expressions=(ref(K), Expression("Alias", "STRING", children=(Expression("Sha1", "STRING"),))))
    measured(session)
    declines = session.decide(asked(2, typed))["declines"]
    assert (0, "NOT_IN_TABLE") in {(each["node"], each["code"]) for each in declines}


def test_what_a_statement_took_is_what_the_next_one_is_expected_to_take(session):
    measured(session)
    before = session.decide(asked(2))["actions"][0]["predictedSeconds"]
    session.observe(ran(2))
    down = session.decide(asked(3))["actions"][0]
    assert down["saving"] == pytest.approx(down["instead"] - 0.4 - 0.5)
    after = session.decide(asked(4) | {"engineUp": True})["actions"][0]
    assert after["predictedSeconds"] == pytest.approx(0.4)
    assert session.graph.calibration["duckdb.start"] == pytest.approx(0.5)
    assert session.graph.calibration["duckdb.factor"] == pytest.approx(0.4 / before, rel=0.01)
    assert after["saving"] == pytest.approx(after["instead"] - 0.4)


def test_what_the_engine_gave_up_is_not_asked_again(session):
    measured(session)
    session.decide(asked(2))
    session.observe(ran(2, refusal={"code": "TIED", "detail": "2 rows"}))
    answer = session.decide(asked(3))
    assert all(action["node"] != 0 for action in answer["actions"])
    assert {"node": 0, "code": "TIED", "detail": "2 rows"} in answer["declines"]


def test_what_was_cancelled_is(session):
    measured(session)
    session.decide(asked(2))
    session.observe(ran(2, refusal={"code": "CANCELLED", "detail": ""}))
    assert [action["node"] for action in session.decide(asked(3))["actions"]] == [0]


def test_sparks_own_seconds_are_not_those_of_a_query_that_the_engine_had(session):
    measured(session)
    session.decide(asked(2))
    nodes = [each | {"seconds": 100.0} for each in executed(report(), 2)["nodes"][:1]]
    session.observe({"type": "executed"} | executed([], 2) | {"nodes": nodes})
    assert session.decide(asked(3))["actions"][0]["instead"] == 5.5


def test_a_plan_that_is_none_is_refused_with_the_place(session):
    with pytest.raises(InvalidRequest, match="typed plan"):
        session.decide(asked(1, '{"nodes": 3}'))


@pytest.mark.parametrize(("factor", "slowed"), [(1.0, 1.0), (0.5, 1.0), (2.0, 2.0), (9.0, 3.0)])
def test_a_machine_that_slows_the_engine_slows_spark(session, factor, slowed):
    """Where neither has run: else what was learned while the machine was busy would keep parts in Spark for ever."""
    (first,) = session.decide(asked(1, platforms="duckdb"))["actions"]
    session.graph.blend("duckdb.factor", factor)
    (action,) = session.decide(asked(2, platforms="duckdb"))["actions"]
    assert action["predictedSeconds"] == pytest.approx(factor * first["predictedSeconds"], rel=0.01)
    assert action["instead"] == pytest.approx(slowed * first["instead"], rel=0.01)


def built(typed: str | None = None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A report on a DataFrame whose columns are computed in Python; what the DataFrame's own plan is for an engine."""
    nodes = [
        node(0, "Aggregate", (1,), core="agg", columns=("k", "sum")),
        node(1, "Project", (2,), core="join", columns=("k", "loud")),
        node(2, "Join", (3, 4), core="join", columns=("k", "x")),
        node(3, "Relation", (), core="left", columns=("k", "x")),
        node(4, "Relation", (), core="right", columns=("k", "y")),
    ]
    whole = frame(nodes[1] | {"rowBytes": 100}, ref="s0", node=1, seen=1, held=True)
    return nodes, whole | {"typed": typed or stand_in(), "places": [[1, 7], [2, 8]]}


def stand_in(first: int = 7, *above: Node) -> str:
    """A column that Python computes, over a join; by these numbers."""
    on = Expression("EqualTo", "BOOLEAN", children=(ref(K), ref(K2)))
    loud = Expression("PythonUDF", "STRING", children=(ref(X),))
    columns = (K, X, Attribute("9", "loud", "STRING"))
    nodes = (
        *above,
        Node(first, "Project", (first + 1,), columns, Args(expressions=(ref(K), ref(X), loud))),
        Node(first + 1, "Join", (first + 2, first + 3), (K, X, K2), Args(kind="Inner", condition=on)),
        Node(first + 2, "LogicalRelation", (), (K, X), Args(files=(FILE,))),
        Node(first + 3, "LogicalRelation", (), (K2,), Args(files=(FILE,))),
    )
    return msgspec.json.encode(TypedPlan(nodes)).decode()


def of_python(query: int, typed: str | None = None, **confs: Any) -> dict[str, Any]:
    nodes, whole = built(typed)
    given = {
        "platforms": "duckdb", "platformsMaxInputBytes": 10**10, "platformsMaxResultBytes": 10**9,
        "firstUseOverhead": 0.1,
    }  # fmt: skip
    asked = stand_in(1, Node(0, "Unknown", (1,), (K,)))
    return decide(nodes, query, typed=asked, confs=given | confs, shared=[whole])


def test_below_a_dataframe_that_is_stored_its_own_parts_are_computed(session):
    actions = session.decide(of_python(1))["actions"]
    stored = next(each for each in actions if each["kind"] == "store" and each["ref"] == "s0")
    assert (stored["node"], stored["reason"], stored["maxOverhead"]) == (1, "HELD", 0.1)
    (route,) = [each for each in actions if each["kind"] == "route"]
    assert (route["node"], route["ref"]) == (2, "s0"), "the query's node, and the DataFrame that has it"
    assert (route["saving"] < 0, stored["spareSeconds"]) == (True, 0.0)
    assert [(each["name"], each["node"]) for each in route["tables"]] == [("t9", 9), ("t10", 10)], "of its own plan"
    assert [each["attribute"] for each in route["columns"]] == ["1", "2", "3"]


def test_what_the_engine_saves_may_be_spent_on_storing(session):
    session.graph.blend("duckdb.factor", 0.01)
    actions = session.decide(of_python(1))["actions"]
    (stored,) = [each for each in actions if each["kind"] == "store" and each["ref"] == "s0"]
    (route,) = [each for each in actions if each["kind"] == "route"]
    assert stored["spareSeconds"] == route["saving"] > 0


def test_what_the_engine_saves_is_divided_among_what_is_stored(session):
    session.graph.blend("duckdb.factor", 0.01)
    told = of_python(1)
    more = [
        node(0, "Union", (1, 5), core="union", columns=("k",)),
        node(5, "Project", (6,), core="third", columns=("k", "upper")),
        node(6, "Relation", (), core="third", columns=("k", "z")),
    ]
    told["plan"]["nodes"] = [more[0], *told["plan"]["nodes"][1:], *more[1:]]
    told["plan"]["shared"].append(frame(more[1], ref="s1", node=5, seen=1, held=True))
    actions = session.decide(told)["actions"]
    spare = [each["spareSeconds"] for each in actions if each["kind"] == "store" and each["ref"]]
    (route,) = [each for each in actions if each["kind"] == "route"]
    assert spare == [route["saving"] / 2] * 2 and route["saving"] > 0


def test_of_a_dataframe_whose_plan_cannot_be_told_no_part_is_computed(session):
    _, whole = built()
    told = of_python(1)
    told["plan"]["shared"] = [whole | {"typed": None}]
    assert [each["kind"] for each in session.decide(told)["actions"]] == ["store", "store"]
    answer = session.decide(of_python(2, typed="no plan"))
    assert "route" not in [each["kind"] for each in answer["actions"]]
    failed = next(each for each in answer["declines"] if each["code"] == "INTERNAL_ERROR")
    assert "pass route: InvalidRequest" in failed["detail"]


def test_where_the_dataframe_is_not_stored_after_all_no_part_of_it_is_computed(session):
    actions = session.decide(of_python(1, maxBytes=0))["actions"]
    assert [each["kind"] for each in actions] == []


def test_what_may_come_again_keeps_nothing_from_the_engine(session):
    """The aggregate may be held, and saves nothing now."""
    typed, nodes = plan(), report()
    whole = frame(nodes[0] | {"rowBytes": 50}, ref="s0", node=0, seen=1, held=True) | {"typed": typed}
    given = {"platforms": "duckdb", "platformsMaxInputBytes": 10**10, "platformsMaxResultBytes": 10**8}
    told = decide(nodes, 1, typed=typed, confs=given | {"firstUseOverhead": 0.1}, shared=[whole])
    (action,) = session.decide(told)["actions"]
    assert (action["kind"], action["node"], action.get("ref")) == ("route", 0, None)
