"""Parts that a plan has more than once, such as a common table expression that Catalyst inlines.

Two nodes are alike where they do the same to inputs that are alike. Attributes have other ids in each copy, so these
are compared by their places in the inputs. Aggregates with the same groups are alike whatever they tell of them:
Catalyst drops from each copy the columns that are not read there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from spark_regions.platforms.duckdb.operators import expressions, result_of, subqueries, walk
from spark_regions.platforms.equivalents import UNREAD
from spark_regions.platforms.typed import Args, Attribute, Expression, Node, SortKey, SourceFile

Place = tuple[int, int]
"""Of an attribute: the input, and the column in it."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """
    :param node: has the rows of all of them, and each column of any
    :param columns: of each of them, its output's attributes in that of `node`
    """

    node: Node
    columns: Mapping[int, tuple[str, ...]]


def repeated(nodes: Mapping[int, Node], order: Sequence[int]) -> dict[int, Repeated]:
    """By node, those that are worth computing once: nodes that are there more often than what is above them, where
    rows are grouped for them. A join that is computed by itself is one that DuckDB cannot order with those above: its
    rows may be many more than what these leave.

    :param order: of all nodes, each behind its inputs
    """
    files = Counter(each.args.files[0].path for each in nodes.values() if each.args.files)
    if not any(count > 1 for count in files.values()):
        return {}
    copies = _Copies(nodes)
    groups: dict[int, list[int]] = defaultdict(list)
    grouping: set[int] = set()
    parents: dict[int, int] = {}
    for number in order:
        apart = subqueries(nodes[number])
        groups[copies.number(number, apart)].append(number)
        below = (*nodes[number].children, *apart)
        parents.update(dict.fromkeys(below, number))
        if nodes[number].operator in ("Aggregate", "Window") or not grouping.isdisjoint(below):
            grouping.add(number)
    times = {member: len(members) for members in groups.values() for member in members}
    found: dict[int, Repeated] = {}
    for members in groups.values():
        more = any(times[each] > times.get(parents.get(each, -1), 1) for each in members)
        if more and members[0] in grouping:
            found |= dict.fromkeys(members, copies.one(members))
    return found


class _Copies:
    """What nodes do, as numbers that are equal where it is the same."""

    def __init__(self, nodes: Mapping[int, Node]) -> None:
        self._nodes = nodes
        self._numbers: dict[Hashable, int] = {}
        self._all: dict[int, int] = {}
        self._places: dict[int, dict[str, Place]] = {}

    def number(self, number: int, apart: set[int]) -> int:
        """Of a node whose inputs have theirs: the same for those whose rows are, but for an aggregate's columns.

        :param apart: plans of its subqueries
        """
        node = self._nodes[number]
        inputs = [child for child in node.children if child not in apart]
        places: dict[str, Place] = {}
        for at, child in enumerate(inputs):
            for column, each in enumerate(self._nodes[child].output if child in self._nodes else ()):
                places[each.id] = (at, column)
        self._places[number] = places
        below = tuple(self._all.get(child, -1 - child) for child in inputs)
        rest = structs.replace(node.args, expressions=(), exists=None)
        listed = self._frozen(node.args.expressions, places)
        told = tuple((places.get(each.id, "" if inputs else each.name), each.type) for each in node.output)
        rows = self._of((node.operator, below, self._frozen(rest, places)))
        self._all[number] = self._of((rows, told, listed))
        return rows if node.operator == "Aggregate" else self._all[number]

    def one(self, members: Sequence[int]) -> Repeated:
        """The first node, if it is an aggregate with what the others tell of the same groups."""
        first = self._nodes[members[0]]
        if first.operator != "Aggregate":
            ids = tuple(each.id for each in first.output)
            return Repeated(first, dict.fromkeys(members, ids))
        attributes = {place: name for name, place in self._places[first.id].items()}
        results: dict[Hashable, tuple[Expression, Attribute]] = {}
        columns: dict[int, tuple[str, ...]] = {}
        for member in members:
            node, places = self._nodes[member], self._places[member]
            names = {name: attributes[place] for name, place in places.items()}
            keys = [self._frozen(result_of(each)[1], places) for each in node.args.expressions]
            for key, item, told in zip(keys, node.args.expressions, node.output, strict=True):
                if key not in results:
                    item = _renamed(item, names)
                    results[key] = item, structs.replace(told, id=result_of(item)[0])
            columns[member] = tuple(results[key][1].id for key in keys)
        listed, output = zip(*results.values(), strict=True)
        args = structs.replace(first.args, expressions=listed)
        return Repeated(structs.replace(first, output=output, args=args), columns)

    def _of(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _frozen(self, value: Any, places: Mapping[str, Place]) -> Hashable:
        kind = type(value)
        if kind is tuple:
            return tuple([self._frozen(each, places) for each in value]) if value else value
        if kind is not Expression:
            told = isinstance(value, Args | SortKey | SourceFile)
            return self._frozen(structs.astuple(value), places) if told else value
        if value.unknown:
            return "unknown", id(value)
        if value.kind == "AttributeReference":
            name = value.fields.get("id", "")
            return places.get(name, name), value.type
        fields = (
            ()
            if value.kind == "Alias"
            else tuple(sorted(each for each in value.fields.items() if each[0] not in UNREAD))
        )
        plan = None if value.plan is None else self._all.get(value.plan, -1 - value.plan)
        return value.kind, value.type, fields, plan, self._frozen(value.children, places)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """With other attributes."""
    children = tuple(_renamed(each, names) for each in expression.children)
    fields = expression.fields
    if expression.kind == "AttributeReference":
        fields = fields | {"id": names.get(fields["id"], fields["id"])}
    return structs.replace(expression, children=children, fields=fields)


def read(found: Iterable[Repeated]) -> frozenset[str]:
    """Attributes that these read."""
    listed = (each for one in found for item in expressions(one.node) for each in walk(item))
    return frozenset(each.fields.get("id", "") for each in listed if each.kind == "AttributeReference")
