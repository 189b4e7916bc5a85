from __future__ import annotations

import random

import pytest
from click.testing import CliRunner
from wire_client import decide, executed, report

from spark_regions.cli.commands import commands
from spark_regions.costs.learned import (
    EXPRESSIONS,
    LEAST_OF_KIND,
    LEAST_SHARE,
    LEAST_STAGES,
    TASK,
    Work,
    counted,
    held_out,
    intervals,
    learned,
    scale,
    scaled,
    work_of,
)
from spark_regions.store import timed_stages as stored
from spark_regions.store.admin import opened
from spark_regions.store.graph import Batch, prune, write_batch
from spark_regions.store.weights import REFIT_STAGES, fit, refitted
from spark_regions.wire.messages import TimedStage

TRUE = {
    "FileSourceScanExec": 0.05e-6,
    "HashAggregateExec": 0.6e-6,
    "SortExec": 0.1e-6,
    "ProjectExec": 0.02e-6,
    TASK: 5e-3,
    EXPRESSIONS: 2e-6,
}
"""Of a machine that is unlike what the fixed weights say."""


def works(count: int, noise: float = 0.1, seed: int = 1) -> list[Work]:
    """Stages that take what `TRUE` says, each off by some share."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        kinds = chance.sample(["HashAggregateExec", "SortExec", "ProjectExec"], chance.randint(0, 3))
        amounts = {kind: 10 ** chance.uniform(4, 7) for kind in ["FileSourceScanExec", *kinds]}
        amounts |= {TASK: float(chance.randint(1, 20)), EXPRESSIONS: 10 ** chance.uniform(3, 6)}
        seconds = Work(0.0, amounts).predicted(TRUE)
        found.append(Work(seconds * chance.uniform(1 - noise, 1 + noise), amounts))
    return found


def stages(count: int, seed: int = 1) -> list[TimedStage]:
    return [
        TimedStage(
            work.seconds * 2, work.seconds, 0.0, int(work.amounts[TASK]),
            {kind: rows for kind, rows in work.amounts.items() if kind not in (TASK, EXPRESSIONS)},
            work.amounts[EXPRESSIONS],
        )
        for work in works(count, seed=seed)
    ]  # fmt: skip


def test_weights_of_another_machine_are_found():
    found = learned(works(300))
    for kind in ("FileSourceScanExec", "HashAggregateExec", "SortExec", TASK, EXPRESSIONS):
        assert found[kind] == pytest.approx(TRUE[kind], rel=0.2), kind


def test_the_fit_is_the_least_of_its_error():
    """No single weight can be changed for the better: the descent is at its end."""
    given = works(100, noise=0.5)
    start, found = scaled(given), learned(given)

    def loss(weights: dict[str, float]) -> float:
        prior = 0.3 * sum((weights[kind] / start[kind] - 1) ** 2 for kind in weights)
        return prior + sum(work.error(weights) ** 2 for work in given)

    least = loss(found)
    for kind in found:
        assert loss(found | {kind: found[kind] * 1.02}) > least
        assert loss(found | {kind: found[kind] * 0.98}) > least or found[kind] <= LEAST_SHARE * start[kind] * 1.001


def test_what_is_always_together_is_divided_as_the_fixed_weights_do():
    given = [
        Work(1e-7 * rows, {"FileSourceScanExec": rows, "ColumnarToRowExec": rows})
        for rows in (1e5 * n for n in range(1, 60))
    ]
    found = learned(given)
    assert found["FileSourceScanExec"] / found["ColumnarToRowExec"] == pytest.approx(0.25 / 0.05, rel=0.25)
    assert found["FileSourceScanExec"] + found["ColumnarToRowExec"] == pytest.approx(1e-7, rel=0.1)


def test_a_kind_of_few_stages_keeps_its_fixed_weight_scaled_to_the_machine():
    given = works(100)
    few = [Work(9.0, {"WindowExec": 1e6, TASK: 1.0})] * (LEAST_OF_KIND - 1)
    found = learned(given + few)
    assert found["WindowExec"] == scaled(given + few)["WindowExec"]
    assert learned(given + few * 2)["WindowExec"] > 2 * found["WindowExec"]


def test_nothing_goes_through_an_operator_for_nothing():
    given = works(100) + [Work(0.005, {"FilterExec": 1e7, TASK: 1.0})] * 50
    assert learned(given)["FilterExec"] == pytest.approx(LEAST_SHARE * scaled(given)["FilterExec"])


def test_intervals_hold_the_weights_and_shrink_with_stages():
    few, many = intervals(works(40)), intervals(works(400))
    low, high = many["HashAggregateExec"]
    assert low < high and low < TRUE["HashAggregateExec"] * 1.1 and high > TRUE["HashAggregateExec"] * 0.9
    assert high - low < few["HashAggregateExec"][1] - few["HashAggregateExec"][0]


def test_held_out_stages_are_predicted_better_than_by_fixed_weights():
    given = works(200)
    found = held_out(given)
    assert sorted(map(id, (each.work for each in found))) == sorted(map(id, given)), "each stage once"
    off = sorted(each.learned for each in found)[len(found) // 2]
    before = sorted(each.fixed for each in found)[len(found) // 2]
    assert off < 0.15 < before


def test_stages_of_one_group_are_held_out_together():
    given = works(50)
    alone = Work(100.0, {"NewExec": 1.0, TASK: 1.0})
    found = held_out([*given, alone], [*range(50), 99])
    (of_it,) = [each for each in found if each.work is alone]
    assert of_it.learned > 0.9, "its own group taught nothing of it"


@pytest.mark.parametrize(
    ("stage", "seconds"),
    [
        (TimedStage(4.0, 2.0, 1.0, 3, {"SortExec": 10.0}), 1.5),  # a quarter was measured
        (TimedStage(4.0, 2.0, 0.0, 1, {"SortExec": 10.0, "ArrowEvalPythonExec": 5.0}), 4.0),
        (TimedStage(4.0, 5.0, 0.0, 1, {"SortExec": 10.0}), 4.0),
        (TimedStage(4.0, 2.0, 4.0, 1, {"SortExec": 10.0}), 0.0),
        (TimedStage(0.0, 0.0, 0.0, 1, {}), 0.0),
    ],
)
def test_what_the_weights_are_to_explain(stage, seconds):
    assert work_of(stage).seconds == seconds
    assert work_of(stage).amounts[TASK] == stage.tasks


def put(catalog, found):
    batch = Batch(timed=stored.encoded(found))
    catalog.write(lambda connection: write_batch(connection, batch, 1))


def read(catalog):
    return catalog.read(lambda connection: stored.timed_stages(connection, stored.machine()))


def test_of_stages_with_the_same_work_the_last_is_kept(session):
    catalog = session.store.catalog
    before = TimedStage(2.0, 1.0, 0.0, 1, {"SortExec": 1000.0})
    after = TimedStage(1.0, 0.5, 0.0, 1, {"SortExec": 1100.0})
    other = TimedStage(1.0, 0.5, 0.0, 1, {"SortExec": 4000.0})
    put(catalog, [before])
    put(catalog, [after, other])
    assert sorted(read(catalog), key=lambda each: each.rows["SortExec"]) == [after, other]


def test_a_bounded_number_is_kept(session, monkeypatch):
    catalog = session.store.catalog
    monkeypatch.setattr(stored, "KEEP_TIMED", 20)
    for number in range(30):
        put(catalog, [TimedStage(1.0, 1.0, 0.0, 1, {f"Kind{number}": 1.0})])
    catalog.write(prune)
    kept = {kind for each in read(catalog) for kind in each.rows}
    assert kept == {f"Kind{number}" for number in range(10, 30)}


def test_weights_are_fitted_again_when_enough_stages_ran(session):
    catalog = session.store.catalog
    assert refitted(catalog) is None
    put(catalog, stages(2 * LEAST_STAGES))
    first = refitted(catalog)
    assert first is not None and first.micros["HashAggregateExec"] == pytest.approx(0.6, rel=0.4)
    assert TASK not in first.micros and EXPRESSIONS not in first.micros
    assert first.expressions == pytest.approx(2.0, rel=0.5)
    assert first.others == scale(works(2 * LEAST_STAGES)) != 1.0
    assert refitted(catalog) == first, "nothing ran since"
    put(catalog, stages(2 * REFIT_STAGES, seed=2))
    again = refitted(catalog)
    assert again is not None and again.fitted > first.fitted
    assert catalog.read(lambda connection: stored.learned_weights(connection, stored.machine())) == again


def test_a_driver_gets_the_weights_until_it_divides_by_them(session):
    query = 0

    def told(fitted):
        nonlocal query
        query += 1
        answer = session.decide(decide(report(), query)).get("weights")
        session.observe({"type": "executed", **executed(report(), query), "fitted": fitted})
        return answer

    assert told(0.0) is None
    session.weights = fit(session.store.catalog, stages(LEAST_STAGES))
    at = session.weights.fitted
    assert told(0.0)["fitted"] == at
    assert told(at)["fitted"] == at, "the answer before may have come too late"
    assert told(at) is None


def test_what_a_query_teaches_reaches_the_catalog(session):
    (stage,) = stages(1)
    body = {
        "seconds": stage.seconds, "cpuSeconds": stage.cpu_seconds, "tasks": stage.tasks, "rows": stage.rows,
        "expressionMicros": stage.expression_micros,
    }  # fmt: skip
    session.decide(decide(report(), 1))
    session.observe({"type": "executed", **executed(report(), 1), "stages": [body]})
    session.graph.flush()
    assert read(session.store.catalog) == [stage]


def command(folder, *arguments):
    return CliRunner().invoke(commands, ["calibrate", "--dir", str(folder), "--namespace", "anna", *arguments])


def test_calibrate_shows_fits_and_forgets(tmp_path):
    with opened(str(tmp_path), "anna", "") as store:
        put(store.catalog, stages(5))
    few = command(tmp_path)
    assert few.exit_code == 1
    assert "Found 5 stages of" in few.output and "Hint: spark-regions calibrate --run" in few.output
    with opened(str(tmp_path), "anna", "") as store:
        put(store.catalog, stages(100))
    shown = command(tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "HashAggregate " in shown.output and "too few" not in shown.output
    assert "Half of those held out are predicted within" in shown.output
    with opened(str(tmp_path), "anna", "") as store:
        assert store.catalog.read(lambda connection: stored.learned_weights(connection, stored.machine())) is not None
    assert command(tmp_path, "--forget").exit_code == 0
    with opened(str(tmp_path), "anna", "") as store:
        assert read(store.catalog) == []
        assert store.catalog.read(lambda connection: stored.learned_weights(connection, stored.machine())) is None
    assert command(tmp_path, "--run", "--forget").exit_code == 2


def test_calibrate_of_no_store(tmp_path):
    result = CliRunner().invoke(commands, ["calibrate", "--dir", str(tmp_path / "none")])
    assert result.exit_code == 1 and "No store at" in str(result.exception)


def test_counts_are_of_stages():
    assert counted([Work(1.0, {"a": 5.0, "b": 1.0}), Work(1.0, {"a": 2.0})]) == {"a": 2, "b": 1}
