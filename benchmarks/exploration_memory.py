"""A simulation: which datasets of an exploration leave memory, and what that costs. No Spark, only arithmetic.

Two nested explores (Meta-Dataflows §6, the synthetic job): each of `outer` branches makes a dataset of the source, each
of its `inner` branches one of that, which is scored, and read once more if it is chosen. Datasets are blocks; what does
not fit goes to disk, and comes back when it is read. Branches run in the product's order. Who leaves memory:

- `lru`: the least recently used, as in Spark, whose blocks never leave for one of the same dataset
- `amm`: the lowest number of reads to come x bytes x alpha (algorithm 2, §4.3)
- `farthest`: whose next read comes last, for which the whole order has to be known; a bound for all of them

Each without and with what the product does in any case: a loser's data is dropped at once (incremental). Hit ratios,
and seconds over those of `lru`, by size of the data, topology, and cost of processing (figs. 11-18).

python -m benchmarks.exploration_memory [--out benchmarks/results]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Any

from benchmarks.measure import Options, benchmark_main
from spark_regions.exploration.choose import Choose
from spark_regions.exploration.select import maximum
from spark_regions.exploration.space import Space, product

BLOCKS = 16
"""Of a dataset."""
READ_MEMORY, WRITE_MEMORY, READ_DISK, WRITE_DISK = 1.0, 1.0, 8.0, 12.0
"""Seconds for the source's bytes: memory some ten times as fast as a disk."""
ALPHA = WRITE_DISK * READ_MEMORY / (WRITE_MEMORY * READ_DISK)
"""The paper's ratio of a node; of one node it orders nothing."""

DRAWS = 5
"""Of sizes and scores."""
WAYS = {
    policy + suffix: (policy, bool(suffix)) for suffix in ("", "+incremental") for policy in ("lru", "amm", "farthest")
}

Block = tuple[str, int]


@dataclass(frozen=True)
class Job:
    """
    :param memory: over the size of the source, as are sizes of datasets
    :param compute: seconds for the source's bytes
    :param shrinks: size of a branch's dataset over that of what it reads, at least and at most
    """

    outer: int = 10
    inner: int = 12
    memory: float = 4.0
    compute: float = 2.0
    shrinks: tuple[float, float] = (0.7, 1.0)


class Memory:
    """Blocks in memory and on disk under a policy.

    :param ahead: all reads in their order, where the policy is to know them
    :ivar uses: reads of each dataset that are still to come, if its branch is chosen
    :ivar trace: reads so far
    """

    def __init__(self, room: float, policy: str, ahead: Sequence[str] = ()) -> None:
        self.free, self._policy = room, policy
        self._next: dict[str, list[int]] = defaultdict(list)
        for place in range(len(ahead) - 1, -1, -1):
            self._next[ahead[place]].append(place)
        self.trace: list[str] = []
        self.sizes: dict[str, float] = {}
        self.uses: dict[str, int] = {}
        self.seconds = 0.0
        self.hits = self.reads = 0
        self._inside: dict[Block, None] = {}
        """Least recently used first."""
        self._disk: set[Block] = set()

    def write(self, name: str, size: float, uses: int) -> None:
        self.sizes[name], self.uses[name] = size, uses
        for number in range(BLOCKS):
            self._put((name, number), WRITE_MEMORY)

    def read(self, name: str) -> None:
        self.uses[name] -= 1
        self.trace.append(name)
        if self._next[name]:
            self._next[name].pop()
        for number in range(BLOCKS):
            block = (name, number)
            self.reads += 1
            if block in self._inside:
                self.hits += 1
                del self._inside[block]
                self._inside[block] = None
                self.seconds += READ_MEMORY * self._size(name)
            else:
                self.seconds += READ_DISK * self._size(name)
                self._put(block, 0.0)

    def drop(self, name: str) -> None:
        for number in range(BLOCKS):
            block = (name, number)
            if block in self._inside:
                del self._inside[block]
                self.free += self._size(name)
            self._disk.discard(block)

    def _size(self, name: str) -> float:
        return self.sizes[name] / BLOCKS

    def _put(self, block: Block, write: float) -> None:
        name, size = block[0], self._size(block[0])
        going, room = [], self.free
        for each in self._leaving(name):
            if room >= size:
                break
            going.append(each)
            room += self._size(each[0])
        if room < size:
            self._to_disk(block)
            return
        for each in going:
            del self._inside[each]
            self.free += self._size(each[0])
            self._to_disk(each)
        self._inside[block] = None
        self.free -= size
        self.seconds += write * size

    def _leaving(self, asks: str) -> Iterable[Block]:
        """What may leave for a block of a dataset, in this order."""
        others = (block for block in self._inside if block[0] != asks)
        if self._policy == "lru":
            return others
        stays = self._preference if self._policy == "amm" else self._nearness
        return sorted(others, key=lambda block: stays(block[0]))

    def _preference(self, name: str) -> float:
        return self.uses[name] * self.sizes[name] * ALPHA

    def _nearness(self, name: str) -> float:
        return -self._next[name][-1] if self._next[name] else -inf

    def _to_disk(self, block: Block) -> None:
        if block not in self._disk:
            self._disk.add(block)
            self.seconds += WRITE_DISK * self._size(block[0])


def explored(job: Job, policy: str, incremental: bool, seed: int) -> Memory:
    """All branches of both scopes, depth first."""
    draw = Random(seed)
    ahead = explored(job, "lru", incremental, seed).trace if policy == "farthest" else ()
    memory = Memory(job.memory, policy, ahead)

    def scope(name: str, many: int, inside: Callable[[str, int], str] | None) -> str:
        """The chosen branch's dataset; the others' are gone."""
        choose = Choose(Space(product({"branch": range(many)})), maximum)
        left: dict[int, str] = {}
        while (number := choose.next()) is not None:
            branch = f"{name}.{number}"
            memory.read(name)
            memory.seconds += job.compute * memory.sizes[name]
            # Read by the branches of the inner scope, or by the score; once more if it is chosen.
            memory.write(branch, memory.sizes[name] * draw.uniform(*job.shrinks), job.inner if inside else 2)
            left[number] = inside(branch, number) if inside else branch
            if inside:
                memory.drop(branch)
            else:
                memory.read(branch)
            lost = choose.scored(number, draw.random()).discard
            for loser in sorted(lost) if incremental else ():
                memory.drop(left.pop(loser))
        (chosen,) = choose.chosen()
        for number, each in left.items():
            if number != chosen:
                memory.drop(each)
        return left[chosen]

    memory.write("source", 1.0, job.outer)
    memory.read(scope("source", job.outer, lambda branch, number: scope(branch, job.inner, None)))
    return memory


def compared(job: Job) -> dict[str, Any]:
    """Over the same draws."""
    hits: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for name, (policy, incremental) in WAYS.items():
        memories = [explored(job, policy, incremental, seed) for seed in range(DRAWS)]
        hits[name] = round(sum(each.hits for each in memories) / sum(each.reads for each in memories), 3)
        seconds[name] = sum(each.seconds for each in memories)
    relative = {name: round(each / seconds["lru"], 3) for name, each in seconds.items()}
    return {"hit_ratio": hits, "seconds_over_lru": relative}


def run(options: Options) -> dict[str, Any]:
    topologies = [(outer, 120 // outer) for outer in (2, 4, 6, 10, 12, 20, 30, 60)]
    jobs = {f"data {1 / memory:.3g} of memory": Job(memory=memory) for memory in (8.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.5)}
    jobs |= {f"{outer} x {inner} branches": Job(outer, inner) for outer, inner in topologies}
    jobs |= {f"processing {cost:g}": replace(Job(memory=2.0), compute=cost) for cost in (0.0, 2.0, 8.0, 32.0)}
    found = {name: compared(job) for name, job in jobs.items()}
    over = [
        {way: each["seconds_over_lru"][f"{way}+incremental"] for way in ("lru", "amm", "farthest")}
        for each in found.values()
    ]
    return {
        # Beside dropping what has lost, over Spark's own order: below 1 is a gain.
        "least_seconds_of_amm": min(round(each["amm"] / each["lru"], 3) for each in over),
        "most_seconds_of_amm": max(round(each["amm"] / each["lru"], 3) for each in over),
        "least_seconds_of_farthest": min(round(each["farthest"] / each["lru"], 3) for each in over),
        "jobs": found,
    }


if __name__ == "__main__":
    benchmark_main("exploration_memory", run, default_rounds=1)
