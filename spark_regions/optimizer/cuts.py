"""What could be cut out of a query for another engine, and what that saves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spark_regions.costs.guess import guessed, moves
from spark_regions.costs.rates import MIN_BENEFIT_SECONDS, SHARED_STAGE_SECONDS, STAGE_OVERHEAD_SECONDS
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Engine, Question
from spark_regions.decision.values import Decline, MaterializationCandidate
from spark_regions.optimizer.withdraw import withheld
from spark_regions.platforms.duckdb.statement import Statement, Statements
from spark_regions.platforms.equivalents import Unproven
from spark_regions.platforms.typed import SourceFile, decode
from spark_regions.stats.cardinality import guessed_rows, rows
from spark_regions.stats.engine_runs import engine_seconds
from spark_regions.stats.estimate import Estimate

DUCKDB = "duckdb"
"""As a value of `spark.regions.platforms`: the engine is asked wherever it can be, for tests."""
ROUTES = ("route",)
SAME_ROWS = 2 / 3
"""Confidence in a guess against a guess: rows that are guessed wrong are wrong for both."""
MOST_SLOWED = 3.0
"""A machine that slows the engine down slows Spark as well, which has not run here: at most so many times."""


@dataclass(frozen=True, slots=True)
class Cut:
    """
    :param instead: seconds in Spark
    :param seconds: of the statement
    :param start_seconds: of the engine, if it does not run yet
    :param rows, bytes: of the result, as expected
    :param reason: a code
    :param ref: of the DataFrame that it is a part of
    """

    node: int
    statement: Statement
    instead: Estimate
    seconds: float
    start_seconds: float
    rows: float
    bytes: float
    reason: str
    ref: str | None

    @property
    def saving(self) -> float:
        return self.instead.value - self.seconds - self.start_seconds

    @property
    def pays(self) -> bool:
        """Also by the lower end of what Spark takes."""
        least = self.instead.low - self.seconds - self.start_seconds
        return self.saving >= MIN_BENEFIT_SECONDS and least > 0


@dataclass(frozen=True, slots=True)
class _Source:
    """The plan that statements are made of: the query's, or that of a DataFrame which is stored in a node's place.

    :param places: nodes of the query to its own; None: they are the same
    :param wider: bytes of a row, of those of the query
    """

    statements: Statements
    ref: str | None = None
    places: Mapping[int, int] | None = None
    wider: float = 1.0

    def own(self, number: int) -> int | None:
        found = number if self.places is None else self.places.get(number)
        return found if found in self.statements.known.nodes else None

    def files(self, own: int) -> tuple[SourceFile, ...]:
        return self.statements.known.nodes[own].args.files


class Cuts:
    """:param engine: that of the question"""

    def __init__(self, question: Question, draft: Draft, engine: Engine, statements: Statements) -> None:
        self.question, self.draft, self.engine = question, draft, engine
        self.always = question.confs.platforms == DUCKDB
        plan, view = question.plan, question.view
        seen = {n: rows(node.signature.lineage, view) for n, node in plan.nodes.items() if node.signature}
        self._rows = guessed_rows(plan, known={n: found.value for n, found in seen.items() if found is not None})
        self._task_seconds = guessed(plan).task_seconds
        kept = {each.node for each in draft.keeps} | {each.node for each in draft.persists}
        kept |= {number for number in draft.loads if draft.matches[number].entry.persisted}
        stand_ins = [candidate for candidate, _ in draft.stores if candidate.ref is not None]
        # What may come again is no reason to compute more now than has to be.
        sure = {candidate.node for candidate in stand_ins if not candidate.first_use}
        # What is kept stays as it is, and what is read does not run.
        self._taken = plan.under({*draft.loads, *kept}) | plan.above(kept | sure)
        self._query = _Source(statements)
        self._sources: dict[int, _Source | None] = {}
        for candidate in stand_ins:
            below = plan.under([candidate.node]) - ({candidate.node} - sure)
            self._sources |= dict.fromkeys(below, self._stand_in(candidate))
        self._moving = {n for n, node in plan.nodes.items() if moves(node)}
        # Where no row is moved or counted, Spark's scan is as good. Below a filter it may skip parts of files by that.
        self._worth_it = self._moving | plan.above(self._moving)
        if self.always:
            scans = plan.nodes.keys() - self._worth_it
            filters = {number for number in scans if plan.nodes[number].operator == "Filter"}
            self._worth_it |= scans - plan.under(filters) | filters
        self._possible: set[int] = set()
        self._refused: dict[int, Decline] = {}

    def best(self) -> tuple[Cut, ...]:
        """Those that save most together; none is in another one."""
        plan = self.question.plan
        found: dict[int, tuple[Cut, ...]] = {}
        for number in plan.bottom_up():
            below = tuple(cut for child in plan.nodes[number].children for cut in found[child])
            whole = self._cut(number)
            # What stands above a cut is a stage of Spark's, however little it has to do.
            least = sum(cut.saving for cut in below) - SHARED_STAGE_SECONDS * bool(below)
            better = whole is not None and (self.always or whole.saving >= least)
            found[number] = (whole,) if whole is not None and better else below
        return found[plan.root]

    def declines(self, chosen: Iterable[int]) -> list[Decline]:
        """Why Spark does the rest: what of an operator is not proven, or what the largest part would take."""
        plan = self.question.plan
        inside = plan.under(chosen)
        return [
            decline
            for number, decline in sorted(self._refused.items())
            if number not in inside and plan.parents.get(number) not in self._possible
        ]

    def _stand_in(self, candidate: MaterializationCandidate) -> _Source | None:
        """What runs below a node is its DataFrame's plan; None where no part of that can be told to an engine.

        :raises InvalidRequest: the driver told no plan
        """
        plan = self.question.plan
        found = next((each for each in plan.shared if each.ref == candidate.ref), None)
        if found is None or found.typed is None or not plan.under([found.node]).isdisjoint(self.draft.loads):
            return None
        try:
            known = self._query.statements.known
            statements = Statements(decode(found.typed), known.table, known.untold)
        except Unproven:
            return None
        wider = found.row_bytes / max(plan.nodes[found.node].row_bytes, 1.0)
        return _Source(statements, found.ref, found.places, max(wider, 1.0))

    def _cut(self, number: int) -> Cut | None:
        """The node with all below it, if that may be cut out, and pays."""
        source = self._sources.get(number, self._query)
        own = source.own(number) if source is not None and number not in self._taken else None
        if source is None or own is None:
            return None
        try:
            statement = source.statements.cut(own)
        except Unproven as refusal:
            if source.statements.refusal(own) is not None:
                self._refused[number] = Decline(number, refusal.code, refusal.detail)
            return None
        if number not in self._worth_it:
            return None
        self._possible.add(number)
        cut = self._priced(number, source, statement)
        why = self._stopped(cut, source)
        if why is None and not (self.always or cut.pays):
            why = "ENGINE_NOT_CHEAPER", f"{cut.seconds + cut.start_seconds:.2f} s, Spark {cut.instead.value:.2f} s"
        if why is None:
            return cut
        self._refused[number] = Decline(number, *why)
        return None

    def _stopped(self, cut: Cut, source: _Source) -> tuple[str, str] | None:
        """Why the engine is not asked, whatever that would save."""
        question = self.question
        if cut.node in self.engine.plan.in_order or (cut.node, DUCKDB) in question.unordered:
            return "ROW_ORDER", DUCKDB
        signature = question.plan.nodes[cut.node].signature
        if signature is not None:
            refused = self.engine.refused.get(signature.lineage)
            if refused is not None:
                return refused.code, refused.detail
            found = withheld(question, signature.lineage, ROUTES)
            if found is not None:
                return found
        size = sum(file.bytes for table in cut.statement.tables for file in source.files(table.node))
        if size > question.confs.platforms_max_input_bytes:
            return "INPUT_TOO_LARGE", f"{size} bytes"
        if cut.bytes > question.confs.platforms_max_result_bytes:
            return "RESULT_TOO_LARGE", f"{cut.bytes:.0f} bytes expected"
        return None

    def _priced(self, number: int, source: _Source, statement: Statement) -> Cut:
        node = self.question.plan.nodes[number]
        found = self._rows[number]
        if statement.limit is not None:
            found = min(found, float(statement.limit))
        size = found * max(node.row_bytes, 1.0) * source.wider
        seen = engine_seconds(node.signature.lineage, DUCKDB, self.question.view) if node.signature else None
        seconds = seen.value if seen is not None else self._by_rates(number, source, statement, size)
        start = 0.0 if self.engine.started else self.engine.rates.start_seconds
        reason = "ENGINE" if number in self.draft.inclusive_seconds else "ENGINE_UNSEEN"
        if self.always:
            reason = "ALWAYS"
        instead = self._in_spark(number, 0.0 if seen is not None else SAME_ROWS)
        return Cut(number, statement, instead, seconds, start, found, size, reason, source.ref)

    def _in_spark(self, number: int, trust: float) -> Estimate:
        """As drafted: with what is read, and of a subplan that is computed once for several places, its part.

        Of what the whole query was seen to take by the clock, a part has its share: operators are told by their tasks.

        :param trust: confidence where it was never seen
        """
        plan, draft = self.question.plan, self.draft
        below = plan.under([number])
        known, whole = draft.seconds.get(number), draft.seconds.get(plan.root)
        if known is None or number not in draft.inclusive_seconds:
            # What was seen of it is a part: what stands below it in other queries, too.
            runs = below - plan.under(draft.loads)
            task_seconds = sum(self._task_seconds[each] for each in runs)
            stages = len(runs & self._moving) * STAGE_OVERHEAD_SECONDS
            slowed = min(max(self.engine.rates.factor, 1.0), MOST_SLOWED)
            reads = sum(draft.matches[each].seconds for each in below & draft.loads.keys())
            guess = Estimate(slowed * (task_seconds / max(self.question.cores, 1) + stages) + reads, trust)
            known = guess if known is None or known.value < guess.value else known
        elif self.question.plain_seconds is not None and whole is not None and whole.value > 0 and not draft.loads:
            known = replace(known, value=known.value * max(self.question.plain_seconds / whole.value, 1.0))
        shared = sum(each.saving / len(each.nodes) * len(below.intersection(each.nodes)) for each in draft.shares)
        return replace(known, value=max(known.value - shared, 0.0))

    def _by_rates(self, number: int, source: _Source, statement: Statement, result_bytes: float) -> float:
        """From bytes of the columns that it reads, and rows that it moves."""
        read = 0.0
        for table in statement.tables:
            columns = len(table.columns) + len(table.partition)
            share = columns / max(len(source.statements.known.nodes[table.node].output), 1)
            read += share * sum(file.bytes for file in source.files(table.node))
        plan = self.question.plan
        moving = plan.under([number]) & self._moving
        moved = sum(self._rows[child] for each in moving for child in plan.nodes[each].children)
        return self.engine.rates.seconds(read, moved, result_bytes, self.question.cores)
