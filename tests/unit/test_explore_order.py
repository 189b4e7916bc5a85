"""The order in which an exploration runs: algorithm 1 and theorem 4.3 of Meta-Dataflows §4.2, by chance.

A scope's branches come from `Choose.next`, each runs to its end before the next one begins, and a scope inside of a
branch is a call: what `Runner` does with one branch at a time. So there is no scheduler to test but `Choose` itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark_regions.exploration.choose import Choose
from spark_regions.exploration.select import maximum
from spark_regions.exploration.space import Space, product
from tests.harness import chance

TREES = 10_000

Graph = Mapping[str, Sequence[str]]
"""Each stage, and the stages that it reads."""


@dataclass(frozen=True)
class Scope:
    """An explore, which ends in a choose; a branch is a list of stages and scopes."""

    choose: str
    branches: Sequence[Sequence[str | Scope]]


class Tree:
    """A program with nested explores, by chance; sibling branches are alike if it is symmetric."""

    def __init__(self, draw: random.Random, same: bool) -> None:
        self.draw, self.same = draw, same
        self.graph: dict[str, list[str]] = {}
        self.breadth = draw.randint(2, 3)
        self.most = 16
        self.program: list[str | Scope] = [self.add([])]
        for _ in range(1 + (draw.random() < 0.3)):
            self.explore(self.program, draw.randint(1, 3))
            self.stages(self.program, draw.randint(0, 1))

    def add(self, reads: list[str]) -> str:
        name = f"{len(self.graph)}"
        self.graph[name] = reads
        return name

    def stages(self, program: list[str | Scope], many: int, source: str = "") -> None:
        for _ in range(many):
            program.append(self.add([ended(program) or source]))

    def explore(self, program: list[str | Scope], depth: int) -> None:
        before, inside, after = self.draw.randint(1, 2), depth > 1, self.draw.randint(0, 1)
        seed, branches = self.draw.random(), []
        for _ in range(self.breadth if self.same else self.draw.randint(2, 4)):
            if self.same:
                self.draw.seed(seed)
            elif self.draw.random() < 0.5:
                before, inside = self.draw.randint(1, 3), depth > 1 and self.draw.random() < 0.5
            branch: list[str | Scope] = []
            self.stages(branch, before, ended(program))
            if inside and len(self.graph) < self.most:
                self.explore(branch, depth - 1)
            self.stages(branch, after)
            branches.append(branch)
        program.append(Scope(self.add([ended(branch) for branch in branches]), branches))


def ended(program: Sequence[str | Scope]) -> str:
    """The stage with what a program leaves behind."""
    last = program[-1] if program else ""
    return last.choose if isinstance(last, Scope) else last


def run(program: Sequence[str | Scope]) -> Iterator[str]:
    """Stages in the product's order; a choose after each of its branches, since it is incremental."""
    for each in program:
        if not isinstance(each, Scope):
            yield each
            continue
        choose = Choose(Space(product({"branch": range(len(each.branches))})), maximum)
        while (number := choose.next()) is not None:
            yield from run(each.branches[number])
            yield each.choose
            choose.scored(number, 0.0)


def breadth_first(graph: Graph) -> Iterator[str]:
    """Each stage as soon as what it reads is there, first come, first served."""
    done: set[str] = set()
    while len(done) < len(graph):
        level = [stage for stage in graph if stage not in done and done.issuperset(graph[stage])]
        yield from level
        done.update(level)


def needed(graph: Graph, order: Iterator[str]) -> dict[str, int]:
    """Stages as they are executed, with how many datasets are needed after each: |D^c|.

    A choose counts as executed once all of its branches are.
    """
    readers = dict.fromkeys(graph, 0)
    for reads in graph.values():
        for read in reads:
            readers[read] += 1
    many, found = 0, dict[str, int]()
    for stage in order:
        if not found.keys() >= set(graph[stage]):
            continue
        many += readers[stage] > 0
        for read in graph[stage]:
            readers[read] -= 1
            many -= readers[read] == 0
        found[stage] = many
    return found


def test_no_more_is_needed_than_breadth_first() -> None:
    """Theorem 4.3, as appendix B proves it: after each stage, without early choices; branches alike, and not alike."""
    fewer = 0
    for seed in chance.seeds("explore_trees", TREES, 0):
        with chance.trying("explore_trees", seed):
            tree = Tree(random.Random(seed), same=seed % 2 == 0)
            ours, theirs = needed(tree.graph, run(tree.program)), needed(tree.graph, breadth_first(tree.graph))
            assert ours.keys() == theirs.keys() == tree.graph.keys()
            assert all(ours[stage] <= theirs[stage] for stage in ours)
            fewer += max(ours.values()) < max(theirs.values())
    assert fewer > TREES // 4


def test_an_inner_scope_ends_before_its_siblings_begin() -> None:
    inner = [Scope(f"{name} chosen", [[f"{name}1"], [f"{name}2"]]) for name in "ab"]
    program: list[str | Scope] = ["source", Scope("chosen", [["a", inner[0]], ["b", inner[1]]]), "end"]
    assert ",".join(run(program)) == ("source,a,a1,a chosen,a2,a chosen,chosen,b,b1,b chosen,b2,b chosen,chosen,end")
