"""An unchanged job by spark-submit: plain, and several times with the plugin on one store, fresh in every round."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from examples.demo import LAPTOP, Effects, Submitted, differing_reports, effects, plugin_confs, submit


@dataclass(frozen=True)
class Runs:
    """By name of the run, one of each a round; :param differing: reports that are not the plain job's"""

    jobs: dict[str, list[Submitted]]
    effects: dict[str, list[Effects]]
    differing: list[str]

    def seconds(self, name: str) -> list[float]:
        return [job.seconds for job in self.jobs[name]]

    def seconds_reports(self, name: str) -> list[float]:
        return [job.seconds_reports for job in self.jobs[name]]


def recurring_runs(job: Path, before: str, after: str, names: Sequence[str], rounds: int) -> Runs:
    """
    :param before: the job's argument before its output folder; :param after: the one after it
    """
    jobs: dict[str, list[Submitted]] = {name: [] for name in ("plain", *names)}
    did: dict[str, list[Effects]] = {name: [] for name in names}
    differing: set[str] = set()
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
            folder = Path(name)
            ours = LAPTOP | plugin_confs(folder / "recycle")
            # The plain job next to the last run once, next to the first once: the machine may get slower meanwhile.
            for each in ("plain", *names) if number % 2 == 0 else (*names, "plain"):
                found = submit(job, [before, str(folder / each), after], LAPTOP if each == "plain" else ours)
                jobs[each].append(found)
                if each != "plain":
                    did[each].append(effects(folder / "recycle", found.log))
            for each in names:
                differing |= {f"{each}: {report}" for report in differing_reports(folder / "plain", folder / each)}
    return Runs(jobs, did, sorted(differing))
