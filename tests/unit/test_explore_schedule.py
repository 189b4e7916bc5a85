"""Branch-aware scheduling against breadth first, by chance and by example."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator

import pytest

from spark_regions.errors import ExploreError
from spark_regions.explore.schedule import Graph, branch_aware, scopes, stored
from tests.harness import chance

TREES = 10_000


def breadth_first(graph: Graph) -> Iterator[str]:
    """Each stage as soon as what it reads is there, first come, first served."""
    done: set[str] = set()
    waiting = deque(graph)
    level = [stage for stage in graph if not graph[stage]]
    while level:
        for stage in level:
            yield stage
            done.add(stage)
            waiting.remove(stage)
        level = [stage for stage in waiting if done.issuperset(graph[stage])]


class Tree:
    """A program with nested explores: a source, stages, and explores that each end in a choose."""

    def __init__(self, draw: random.Random, same: bool) -> None:
        self.draw, self.same = draw, same
        self.graph: dict[str, list[str]] = {"source": []}
        self.chooses: dict[str, str] = {}
        self.breadth = draw.randint(2, 3)
        self.most = 16
        last = "source"
        for _ in range(1 + (draw.random() < 0.3)):
            last = self.explore(last, draw.randint(1, 3))
            last = self.stages(last, draw.randint(0, 1))

    def add(self, reads: list[str]) -> str:
        name = f"{len(self.graph)}"
        self.graph[name] = reads
        return name

    def stages(self, last: str, many: int) -> str:
        for _ in range(many):
            last = self.add([last])
        return last

    def explore(self, source: str, depth: int) -> str:
        """Sibling branches are alike if the tree is symmetric."""
        before, inside, after = self.draw.randint(1, 2), depth > 1, self.draw.randint(0, 1)
        seed, ends = self.draw.random(), []
        for _ in range(self.breadth if self.same else self.draw.randint(2, 4)):
            if self.same:
                self.draw.seed(seed)
            elif self.draw.random() < 0.5:
                before, inside = self.draw.randint(1, 3), depth > 1 and self.draw.random() < 0.5
            last = self.stages(source, before)
            if inside and len(self.graph) < self.most:
                last = self.explore(last, depth - 1)
            ends.append(self.stages(last, after))
        choose = self.add(ends)
        self.chooses[choose] = source
        return choose


def counted(graph: Graph, order: Iterator[str]) -> list[tuple[str, int]]:
    """Stages as they are executed, with the datasets that are needed after each; as `stored` has it, step by step."""
    readers = dict.fromkeys(graph, 0)
    for reads in graph.values():
        for read in reads:
            readers[read] += 1
    executed: set[str] = set()
    needed, found = 0, []
    for stage in order:
        if not executed.issuperset(graph[stage]):
            continue
        executed.add(stage)
        needed += readers[stage] > 0
        for read in graph[stage]:
            readers[read] -= 1
            needed -= readers[read] == 0
        found.append((stage, needed))
    return found


def test_no_more_is_stored_than_breadth_first() -> None:
    """Theorem 4.3, as appendix B proves it: after each stage, without early choices; branches alike, and not alike."""
    fewer = 0
    for seed in chance.seeds("explore_trees", TREES, 0):
        with chance.trying("explore_trees", seed):
            tree = Tree(random.Random(seed), same=seed % 2 == 0)
            ours = dict(counted(tree.graph, branch_aware(tree.graph, tree.chooses)))
            theirs = dict(counted(tree.graph, breadth_first(tree.graph)))
            assert ours.keys() == theirs.keys() == tree.graph.keys()
            assert all(ours[stage] <= theirs[stage] for stage in ours)
            fewer += max(ours.values()) < max(theirs.values())
            if seed % 50 == 0:
                executed: set[str] = set()
                for stage, needed in ours.items():
                    executed.add(stage)
                    assert len(stored(tree.graph, executed)) == needed
    assert fewer > TREES // 4


NESTED: Graph = {
    "source": [],
    "a": ["source"],
    "b": ["source"],
    "a1": ["a"],
    "a2": ["a"],
    "a chosen": ["a1", "a2"],
    "b1": ["b"],
    "b2": ["b"],
    "b chosen": ["b1", "b2"],
    "chosen": ["a chosen", "b chosen"],
    "end": ["chosen", "source"],
    "other": ["source"],
}
CHOOSES = {"a chosen": "a", "b chosen": "b", "chosen": "source"}


def test_an_inner_explore_ends_before_its_siblings_begin() -> None:
    assert ",".join(branch_aware(NESTED, CHOOSES)) == (
        "source,a,a1,a chosen,a2,a chosen,chosen,b,b1,b chosen,b2,b chosen,chosen,other,end"
    )
    found = scopes(NESTED, CHOOSES)
    assert found["a1"] == ("source", "a", "a", "a1") and found["b2"] == ("source", "b", "b", "b2")
    assert found["a"] == found["a chosen"] == ("source", "a")
    assert {stage for stage in NESTED if not found[stage]} == {"source", "chosen", "end", "other"}


def test_outside_of_all_explores_it_is_breadth_first() -> None:
    graph = {"x": [], "y": [], "x1": ["x"], "y1": ["y"], "z": ["x1", "y1"]}
    assert list(branch_aware(graph, {})) == ["x", "y", "x1", "y1", "z"] == list(breadth_first(graph))


def test_hints_order_branches() -> None:
    stages = list(branch_aware(NESTED, CHOOSES, hint=lambda candidates: candidates[-1]))
    assert stages[:7] == ["source", "other", "b", "b2", "b chosen", "b1", "b chosen"]


def test_superfluous_branches_do_not_run() -> None:
    stages = branch_aware(NESTED, CHOOSES)
    ran = [next(stages) for _ in range(7)]
    assert ran[-1] == "chosen"
    skipped = ["b", "b1", "b2", "b chosen"]
    ran += [stages.send(skipped), *stages]
    assert ran[7:] == ["other", "end"]
    assert stored(NESTED, {*ran, *skipped}) == frozenset()


@pytest.mark.parametrize(
    ("graph", "chooses", "found"),
    [
        ({"a": ["b"]}, {}, "Found 'b', expected a stage of the graph. Hint:"),
        ({"a": []}, {"c": "a"}, "Found 'c', expected a stage"),
        ({"a": ["b"], "b": ["a"]}, {}, "Found the cycle"),
        ({"a": [], "b": ["a"], "c": []}, {"c": "a"}, "Found no way from 'a' to 'c'"),
    ],
)
def test_graphs_that_are_none(graph: Graph, chooses: dict[str, str], found: str) -> None:
    with pytest.raises(ExploreError, match=found):
        next(branch_aware(graph, chooses))


def test_a_hint_names_a_candidate() -> None:
    with pytest.raises(ExploreError, match="Found the hint 'end', expected one of source"):
        next(branch_aware(NESTED, CHOOSES, hint=lambda candidates: "end"))
