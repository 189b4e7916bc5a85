"""The examples of Pasta (figs. 4-8, 10-13) and of the thesis (figs. 49-58), with the papers' answers.

The figures' drawings are rebuilt from what the texts say of them; sizes are ours where the text gives none.
"""

from __future__ import annotations

import math

import pytest
from region_oracle import ids, labelled, workflow

from spark_regions.costs.cost_models import cost_model
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.regions import maestro
from spark_regions.regions.planning import plan
from spark_regions.regions.properties import bridges, clean_edges, maximal_chains, pruning

# Fig. 4: v5 trains a model, v6 evaluates it; its metrics port is blocking, its predictions port is not.
P1 = workflow(
    "e1 v1 v2 10", "e2 v2 v3 3", "e3 v2 v4 7", "e4 v3 v5 3", "e5 v4 v6 7", "e6 v5 v6 1 !", "e7 v6 v7 1 !", "e8 v6 v8 6"
)  # fmt: skip
# Fig. 12.
P2 = workflow("e1 v1 v2 4", "e2 v1 v3 5", "e3 v3 v4 2", "e4 v2 v4 1 !", "e5 v4 v5 3")
# Fig. 10: H1 = e2 e4 e6 without a blocking edge, H2 = e1 e3 e5 e7 with two, H3 = e8 e9 with one.
P3 = workflow(
    "e1 v1 v2 9", "e2 v1 v3 5", "e3 v2 v4 2 !", "e4 v3 v5 4", "e5 v4 v6 8", "e6 v5 v7 6", "e7 v6 v7 2 !",
    "e8 v7 v8 9", "e9 v8 v9 1 !",
)  # fmt: skip
# Fig. 11: e5 is blocking on the cycle e1 e2 e3 e5; the cycle e9 … e13 has no blocking edge.
P4 = workflow(
    "e1 v1 v2 2", "e2 v2 v4 3", "e3 v4 v5 4", "e4 v2 v3 9", "e5 v1 v5 1 !", "e6 v5 v6 1 !", "e7 v6 v7 9", "e8 v5 v12 9",
    "e9 v7 v8 9", "e10 v7 v9 9", "e11 v8 v10 9", "e12 v9 v11 9", "e13 v10 v11 9",
)  # fmt: skip


def regions(found: RegionPlan) -> set[frozenset[str]]:
    return {frozenset(found.plan.operators[place].id for place in region) for region in found.regions}


def test_figure_5_and_6_an_unschedulable_region_plan() -> None:
    u1 = labelled(P1, "e2", "e4")
    assert ids(P1, u1.materialized) == {"e2", "e4", "e6", "e7"}
    assert regions(u1) == {
        frozenset({"v1", "v2", "v4", "v6", "v8"}),
        *(frozenset({name}) for name in ("v3", "v5", "v7")),
    }
    assert not u1.schedulable
    assert u1.hopeless  # The cycle R1 -> R2 -> R3 -> R1 holds e6.


def test_figure_7_and_8_an_execution_order() -> None:
    u2 = labelled(P1, "e2", "e3", "e8")
    assert regions(u2) == {frozenset(names) for names in (("v1", "v2"), ("v3", "v5"), ("v4", "v6"), ("v7",), ("v8",))}
    rank = {P1.operators[place].id: u2.ranks[region] for place, region in enumerate(u2.region_of)}
    assert [rank[name] for name in ("v1", "v3", "v4", "v7", "v8")] == [1, 2, 3, 4, 4]


def test_figure_10_chains() -> None:
    found = {tuple(P3.edges[edge].id for edge in chain) for chain in maximal_chains(P3)}
    assert found == {("e2", "e4", "e6"), ("e1", "e3", "e5", "e7"), ("e8", "e9")}
    pruned = pruning(P3, cost_model("bytes"), {"chains"})
    assert ids(P3, pruned.pipelined) == {"e1", "e5", "e8", "e2", "e6"}
    assert ids(P3, plan(P3).best.materialized) == {"e3", "e7", "e9", "e4"}


def test_figure_10_under_a_cost_that_is_no_sum() -> None:
    pruned = pruning(P3, cost_model("seconds"), {"chains"})
    assert ids(P3, pruned.pipelined) == {"e1", "e5", "e8"}
    assert ids(P3, pruned.chain_of) == {"e2", "e4", "e6"}


def test_figure_11_bridges_and_clean_edges() -> None:
    assert ids(P4, bridges(P4)) == {"e4", "e7", "e8"}
    assert ids(P4, clean_edges(P4)) == {"e4", "e7", "e8", "e9", "e10", "e11", "e12", "e13"}
    assert ids(P4, plan(P4).best.materialized) == {"e1", "e2", "e3", "e5", "e6"} - {"e2", "e3"}


NOTHING = ("chains", "clean", "hopeless", "early-stop")


@pytest.mark.parametrize(
    ("used", "states"),
    [
        ((), 16),
        (("chains",), 4),
        (("clean",), 8),
        (("chains", "clean"), 2),
        # U6 pipelines e2 and e3; what follows from it (U11, U12, U15) is never looked at.
        (("hopeless",), 13),
    ],
)
def test_figure_12_states_of_the_top_down_search(used: tuple[str, ...], states: int) -> None:
    found = plan(P2, "bytes", "top-down", without=[name for name in NOTHING if name not in used])
    assert ids(P2, found.best.materialized) == {"e3", "e4"}
    assert (found.cost, found.proven, found.states) == (3.0, True, states)


def test_figure_13_a_hopeless_state() -> None:
    u6 = labelled(P2, "e1", "e5")
    assert not u6.schedulable
    assert u6.hopeless
    u13, u15 = labelled(P2, "e3"), labelled(P2)
    assert u13.schedulable
    assert u15.hopeless


def test_introduction_cheaper_than_the_heuristic() -> None:
    """Fig. 1 and §1: Flink and Hyracks materialize the 700 GB before the inference, another plan 70 GB on e4."""
    figure = workflow(
        "e1 list split 100", "e2 split train 30", "e3 train model 300", "e4 split read 70", "e5 model infer 1 !",
        "e6 read infer 700", "e7 infer view 5",
    )  # fmt: skip
    exact, usual = plan(figure), plan(figure, method="baseline")
    assert ids(figure, exact.best.materialized) == {"e4", "e5"}
    assert exact.cost == 71.0
    assert usual.cost == 701.0


# Fig. 52: who manages, who works; both sides of the join come from one scan.
FIG_52 = workflow(
    "a Scan ML1 100", "b ML1 Duplicate 100", "c Duplicate Filter1 100", "d Duplicate Filter2 100",
    "e Filter1 HashJoin 30 !", "f Filter2 HashJoin 40", "g HashJoin Viz 20",
    seconds={"Scan": 2, "ML1": 50, "Duplicate": 1, "Filter1": 3, "Filter2": 4, "HashJoin": 5, "Viz": 1},
    first={"Filter2": 0.5, "HashJoin": 0.25},
)  # fmt: skip

# Fig. 55: r2 feeds the build side of J2 (r3), r3 that of J3 (r4), r4 that of J4, whose probe side is r2's.
FIG_55 = workflow(
    "b1 S1 J1 1 !", "p1 S2 F 9", "p2 F J1 8", "p3 J1 D1 7", "b2 D1 J2 5 !", "p4 S3 J2 4", "b3 J2 J3 3 !", "p5 S4 J3 4",
    "b4 J3 J4 3 !", "c1 D1 D2 6", "c2 D2 M1 6", "c3 D2 M2 6", "c4 M1 U 2", "c5 M2 U 3", "c6 U J4 5.5", "out J4 sink 1",
    seconds={"M1": 10, "M2": 30, "J4": 7, "S2": 4, "S3": 5, "S4": 6, "U": 2},
    first={"M1": 2, "M2": 4, "U": 0.5, "J4": 0.25, "D2": 0.125},
)  # fmt: skip


def source_regions(done: maestro.Schedule) -> dict[str, set[str]]:
    flow = done.flow
    return {flow.names[source]: {flow.names[node] for node in flow.region(source)} for source in flow.sources}


def test_figure_49_and_50_regions_by_source() -> None:
    """The profit margins: Merge and Viz belong to both regions, HashJoin not to that of its build side."""
    figure = workflow(
        "a Scan1 HashJoin 1 !", "b Scan1 Merge 1", "c Scan2 HashJoin 1", "d HashJoin Project 1", "e Project Merge 1",
        "f Merge Viz 1",
    )  # fmt: skip
    done = maestro.schedule(figure)
    assert source_regions(done) == {
        "Scan1": {"Scan1", "Merge", "Viz"},
        "Scan2": {"Scan2", "HashJoin", "Project", "Merge", "Viz"},
    }
    assert done.flow.ranks == (1, 2)
    assert done.conflicts == []


def test_figure_52_and_53_two_choices() -> None:
    done = maestro.schedule(FIG_52)
    (conflict,) = done.conflicts
    assert FIG_52.operators[conflict.operator].id == "HashJoin"
    assert [ids(FIG_52, choice.edges) for choice in conflict.choices] == [{"d"}, {"f"}]
    assert source_regions(done) == {
        "Scan": {"Scan", "ML1", "Duplicate", "Filter1", "Filter2"},
        "read f": {"read f", "HashJoin", "Viz"},
    }
    assert done.flow.ranks == (1, 2)
    # Replicating up to Filter2 runs Scan, ML1, Duplicate and Filter2 again.
    assert [choice.recompute_seconds for choice in conflict.choices] == [53.0, 57.0]


def test_figure_53_a_replication() -> None:
    flow = maestro.schedule(FIG_52).flow
    original = type(flow)(FIG_52)
    (number,) = (place for place, link in enumerate(original.links) if FIG_52.edges[link.edge].id == "d")
    replicated = original.replicate({number})
    assert 0 not in replicated.ranks
    assert {
        frozenset(replicated.names[node] for node in replicated.region(source)) for source in replicated.sources
    } == {
        frozenset({"Scan", "ML1", "Duplicate", "Filter1"}),
        frozenset({"Scan again", "ML1 again", "Duplicate again", "Filter2", "HashJoin", "Viz"}),
    }
    assert replicated.recomputed_seconds == 53.0


def test_figure_53_replication_where_it_is_cheaper() -> None:
    """A terabyte takes hours to write; running the scan again takes a minute."""
    large = workflow(
        "a Scan Filter1 1e12", "b Scan Filter2 1e12", "c Filter1 HashJoin 1e12 !", "d Filter2 HashJoin 1e12",
        seconds={"Scan": 40, "Filter1": 10, "Filter2": 20},
    )  # fmt: skip
    done = maestro.schedule(large, "seconds")
    assert [conflict.how for conflict in done.conflicts] == ["replicate"]
    assert done.flow.recomputed_seconds == 40.0
    assert 0 not in done.flow.ranks


def test_figure_55_six_choices() -> None:
    done = maestro.schedule(FIG_55)
    (conflict,) = done.conflicts
    assert conflict.complete
    found = [ids(FIG_55, choice.edges) for choice in conflict.choices]
    six = [{"c1"}, {"c2", "c3"}, {"c2", "c5"}, {"c4", "c3"}, {"c4", "c5"}, {"c6"}]
    assert len(found) == 6
    assert all(choice in found for choice in six)
    # Fig. 55 (d) and (f): r2 falls into two regions, or into three where two edges are cut.
    assert ids(FIG_55, conflict.choices[conflict.chosen].edges) == {"c4", "c5"}
    assert len(done.flow.sources) == 6
    assert 0 not in done.flow.ranks


def test_figure_58_first_response_times() -> None:
    """tau(1) = t(r1) + t(r2 rest) + t(r3) + t(r4) + min over the new regions of their first row."""
    done = maestro.schedule(FIG_55, "first-response")
    (conflict,) = done.conflicts
    without_others = {frozenset(ids(FIG_55, choice.edges)): choice.response_seconds for choice in conflict.choices}
    assert without_others == {
        # The rest of r2 has S2 (4 s) as its slowest; the first row passes D2, M1, U and J4.
        frozenset({"c1"}): 4 + 0.125 + 2 + 0.5 + 0.25,
        frozenset({"c2", "c3"}): 4 + 2 + 0.5 + 0.25,
        frozenset({"c2", "c5"}): 30 + 0.5 + 0.25,
        frozenset({"c3", "c4"}): 10 + 0.5 + 0.25,
        frozenset({"c4", "c5"}): 30 + 0.5 + 0.25,
        frozenset({"c6"}): 30 + 0.25,
    }
    assert ids(FIG_55, conflict.choices[conflict.chosen].edges) == {"c2", "c3"}
    # r1 has S1 and r3, r4 have S3, S4.
    assert done.response_seconds == 1 + 5 + 6 + 6.75


def test_result_operator_outside_the_broken_region() -> None:
    """§21.4, second case: all new regions run to their end before the result's region starts."""
    longer = workflow(
        *(f"{edge.id} {edge.source} {edge.target} {edge.bytes}{' !' * edge.blocking}" for edge in FIG_52.edges[:-1]),
        "g HashJoin Sort 20 !", "h Sort Viz 20",
        seconds={operator.id: operator.seconds for operator in FIG_52.operators} | {"Sort": 9},
    )  # fmt: skip
    (conflict,) = maestro.schedule(longer).conflicts
    assert [choice.response_seconds for choice in conflict.choices] == [50 + 5, 50 + 5]


def test_pasta_needs_more_than_maestro_where_regions_may_overlap() -> None:
    """In fig. 49 Maestro lets Merge take part in two regions one after the other; Pasta gives it one."""
    figure = workflow(
        "a Scan1 HashJoin 1 !", "b Scan1 Merge 1", "c Scan2 HashJoin 1", "d HashJoin Project 1", "e Project Merge 1",
        "f Merge Viz 1",
    )  # fmt: skip
    assert ids(figure, plan(figure).best.materialized) == {"a", "b"}
    assert ids(figure, plan(figure, method="maestro").best.materialized) == {"a"}


def slowest(physical: PhysicalPlan, method: str) -> float:
    return plan(physical, "seconds", method).cost


def test_cost_function_b_prefers_to_join_slow_operators() -> None:
    """Either x or y must part from the rest: together with a slow operator one of them costs nothing."""
    figure = workflow(
        "a scan x 1", "b x join 9", "c scan y 1 !", "d y join 1",
        seconds={"scan": 1, "x": 50, "y": 2, "join": 60},
    )  # fmt: skip
    assert slowest(figure, "exact") == 61.0
    assert ids(figure, plan(figure, "seconds").best.materialized) == {"a", "c"}
    assert slowest(figure, "tds") == 113.0
    assert slowest(figure, "bus") == math.inf


def test_first_response_breaks_condition_one() -> None:
    """Pipelining `now` pulls the quick result into the region that waits for the slow build."""
    figure = workflow("b slow join 1 !", "late join mix 1", "now scan mix 1", "r scan result 1", seconds={"slow": 100})
    model = cost_model("first-response")
    assert model.cost(labelled(figure)) == 100.0
    assert model.cost(labelled(figure, "now")) == 0.0
    assert plan(figure, "first-response").cost == 0.0
