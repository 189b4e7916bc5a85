"""Which stored aggregate has the groups that another one's are made of (docs/rollup.md)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from msgspec.structs import replace

from spark_regions.dag.plan import Plan, Signature
from spark_regions.dag.records import Entry
from spark_regions.matching.subsumes import ColumnMapping, MatchFailure, column_mapping
from spark_regions.wire.messages import Grouping


@dataclass(frozen=True, slots=True)
class RollUp:
    """How the groups of an entry make others.

    :param columns: stored ones that give keys, filters, and what functions read
    :param residual: conjuncts still to be applied to the stored groups
    :param functions: those whose values are merged, each to the stored column
    """

    columns: ColumnMapping
    residual: frozenset[str]
    functions: dict[str, str]


def stored_grouping(grouping: Grouping, columns: Collection[str]) -> Grouping:
    """What an entry with these columns keeps of the aggregate that it is stored of."""
    kept = {function: column for function, column in grouping.functions.items() if column in columns}
    return replace(grouping, functions=kept, parts={}, values={}, refusal=None)


def rolls_up(plan: Plan, node: Signature, wanted: Grouping, entry: Entry) -> RollUp | MatchFailure:
    """How an entry over the same input makes the aggregate `node`, or why it does not.

    Sound if both see the same input rows, cut into finer parts by the entry: each row of the query's input lies in one
    stored group, and a group has only rows that are in one group of the query, with equal values of all that filters
    and keys read. That holds since

    - the core of the inputs is the same, and each filter of the entry's input and on its groups is one of the query's;
    - filters that the query has beyond those, and its keys, are computed from stored columns that have digests of the
      *input's* values: only grouping columns have, where grouping gives back the very bits;
    - a function's value comes of its parts' (which, the driver says), or of values that all rows of a stored group
      have in common, where it does not matter how often a value comes.

    An entry without keys has a row where its input has none, so it serves nothing here.
    """
    stored = entry.grouping
    if stored is None or not stored.keys:
        return MatchFailure("NOT_COVERED", "no groups", entry.id)
    if wanted.refusal is not None:
        return MatchFailure(wanted.refusal.code, wanted.refusal.detail, entry.id)
    filters = node.conjuncts.union(wanted.conjuncts)
    applied = entry.conjuncts.union(stored.conjuncts)
    if extra := len(applied - filters):
        return MatchFailure("CONJUNCTS_DIFFER", f"{extra} filters that the query does not have", entry.id)
    read = plan.columns_read(filters - applied)
    if read is None:
        return MatchFailure("NOT_COVERED", "a filter whose columns are unknown", entry.id)
    read.update(wanted.keys)
    functions: dict[str, str] = {}
    for function in wanted.functions:
        parts = wanted.parts.get(function, ())
        if parts and all(part in stored.functions for part in parts):
            functions |= {part: stored.functions[part] for part in parts}
        elif function in wanted.values:
            read.update(wanted.values[function])
        else:
            return MatchFailure("NOT_COVERED", f"{len(parts)} functions needed for one of the query's", entry.id)
    found = column_mapping(read, entry.columns, plan.expressions)
    if found.missing:
        return MatchFailure("NOT_COVERED", f"{len(found.missing)} values that are no stored groups", entry.id)
    return RollUp(found, filters - applied, functions)
