"""Parts of a query for another engine, which has the same rows for less (RHEEMix §4, with two platforms)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spark_regions.costs.engines import deadline_seconds
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline, MaterializationCandidate
from spark_regions.optimizer.cuts import DUCKDB, Cut, Cuts
from spark_regions.optimizer.small_result import LONG_SECONDS
from spark_regions.platforms.duckdb import TABLE, float_sums
from spark_regions.platforms.duckdb.statement import Statements
from spark_regions.platforms.duckdb.text import UNTOLD
from spark_regions.platforms.equivalents import Unproven
from spark_regions.wire.actions import Route

OFF = "off"


def route(question: Question, draft: Draft) -> Draft:
    """After all that reads, keeps or shares: what they leave to Spark has its price then. Before `withdraw`, which
    takes everything back where the query is switched off.

    Those parts are cut out that together save most. What is kept in memory or for later queries is left alone; a read
    of a stored result, and a store, inside of a cut would not run, and is withdrawn. Below a DataFrame that is stored
    in a node's place its own parts are cut out, with all columns that it has there.
    """
    engine = question.engine
    if engine is None or question.confs.platforms == OFF:
        return draft
    table = float_sums.TABLE if question.confs.platforms_float_sums else TABLE
    untold = frozenset(why.detail for why in engine.refused.values() if why.code == UNTOLD)
    try:
        statements = Statements(engine.plan, table, untold)
    except Unproven as refusal:
        return draft.declined(Decline(question.plan.root, refusal.code, refusal.detail))
    found = Cuts(question, draft, engine, statements)
    cuts = {cut.node: cut for cut in found.best()}
    return _with(question, draft, cuts).declined(*found.declines(cuts))


def _with(question: Question, draft: Draft, cuts: Mapping[int, Cut]) -> Draft:
    """The draft with these cuts, and without what is inside of them."""
    if not cuts:
        return draft
    inside = question.plan.under(cuts)

    def stays(stored: MaterializationCandidate) -> bool:
        """At a cut, what takes the engine long is stored all the same."""
        cut = cuts.get(stored.node)
        if cut is None or stored.ref is not None:
            return stored.node not in inside or (cut is not None and cut.ref == stored.ref)
        return cut.seconds - stored.read_seconds >= LONG_SECONDS

    stores = tuple(each for each in draft.stores if stays(each[0]))
    gone = {*draft.loads, *draft.stored} & inside - {candidate.node for candidate, _ in stores}
    return replace(
        draft,
        loads={number: reason for number, reason in draft.loads.items() if number not in inside},
        stores=stores,
        shares=tuple(each for each in draft.shares if inside.isdisjoint(each.nodes)),
        actions=(*draft.actions, *(_action(question, cut) for cut in cuts.values())),
    ).declined(*(Decline(node, "IN_ENGINE", DUCKDB) for node in sorted(gone)))


def _action(question: Question, cut: Cut) -> Route:
    statement = cut.statement
    return Route(
        cut.node,
        DUCKDB,
        statement.sql,
        statement.tables,
        statement.columns,
        saving=round(cut.saving, 4),
        instead=round(cut.instead.value, 4),
        reason=cut.reason,
        predicted_seconds=round(cut.seconds, 4),
        rows=cut.rows,
        bytes=cut.bytes,
        limit_bytes=question.confs.platforms_max_result_bytes,
        deadline_seconds=deadline_seconds(cut.instead.value),
        finish=statement.finish,
        limit=statement.limit,
        tied=statement.tied,
        ordered=statement.ordered,
        disabled=statement.disabled,
        zone=statement.zone,
        ref=cut.ref,
    )
