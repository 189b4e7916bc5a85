"""`python -m tests.fuzz`: many programs, and a summary. Status 1: a difference; 2: nothing was tested."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from spark_regions.progress import bar
from tests.fuzz import faults
from tests.fuzz.hunt import Failure, Totals, batch
from tests.fuzz.lab import laboratory
from tests.fuzz.oracle import judge
from tests.fuzz.script import load, save, script

FIXTURES = Path(__file__).with_name("fixtures")
BATCH = 50
BATCHES_PER_JVM = 10
"""Then a new store, and a new JVM: what the sessions hold grows with each program."""


def main(arguments: list[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    if options.replay:
        return _replay(options)
    totals, number = Totals(), options.seed if options.seed is not None else 0
    if options.state and options.seed is None and options.state.exists():
        found = json.loads(options.state.read_text(encoding="utf-8"))
        number = int(found["seed"])
        print(f"going on with seed {number}, after {found['programs']} programs")
    print(f"seed {number}; to repeat: python -m tests.fuzz --seed {number} --programs {options.programs}", flush=True)
    started = time.monotonic()
    until = started + options.seconds if options.seconds else float("inf")
    failures: list[Failure] = []
    with bar("programs", options.programs) as advance:
        while _goes_on(options, totals, failures, until):
            with faults.planted(options.fault) as planner, laboratory(planner) as lab:
                for _ in range(BATCHES_PER_JVM):
                    if not _goes_on(options, totals, failures, until):
                        break
                    size = min(BATCH, options.programs - totals.programs)
                    failure = batch(lab, number, size, totals, options.shrink, lambda _: advance(1), until)
                    number += 1
                    if failure is not None:
                        failures.append(failure)
                        _tell(failure, options.save)
                    print(f"{totals.programs} programs, {totals.differences} differences", file=sys.stderr, flush=True)
                    if options.state:
                        options.state.parent.mkdir(parents=True, exist_ok=True)
                        options.state.write_text(json.dumps({"seed": number, "programs": totals.programs}), "utf-8")
    totals.seconds = time.monotonic() - started
    print(_summary(totals))
    if options.summary:
        options.summary.write_text(json.dumps(vars(totals)), encoding="utf-8")
    if failures:
        return 1
    if why := totals.vacuous():
        print(why)
        return 2
    return 0


def _goes_on(options: argparse.Namespace, totals: Totals, failures: list[Failure], until: float) -> bool:
    left = totals.programs < options.programs and time.monotonic() < until
    return left and not (failures and options.first)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--seed", type=int, help="of the first batch; default: where the last run ended")
    parser.add_argument("--state", type=Path, help="remembers where a run ended")
    parser.add_argument("--shrink", type=float, default=120.0, help="seconds for making a failing program small")
    parser.add_argument("--first", action="store_true", help="stop at the first difference")
    parser.add_argument("--save", action="store_true", help="failing programs become fixtures")
    parser.add_argument("--summary", type=Path, help="file for the counts, as JSON")
    parser.add_argument("--fault", choices=sorted(faults.NAMES), help="plant a fault, to see it found")
    parser.add_argument("--replay", type=Path, nargs="+", help="run these saved programs")
    return parser


def _tell(failure: Failure, keep: bool) -> None:
    digest = hashlib.sha256(json.dumps(failure.program, sort_keys=True).encode()).hexdigest()[:8]
    name = f"found_{digest}"
    print(f"\nDIFFERS (seed {failure.seed}): {failure.reason}\n")
    print(script(failure.program, failure.reason[:300], f"{name}.py"), flush=True)
    if keep:
        print(f"saved as {save(failure.program, failure.reason, FIXTURES, name)}", flush=True)


def _replay(options: argparse.Namespace) -> int:
    """Verdicts of saved programs, each a line of JSON in the summary."""
    found: dict[str, Any] = {}
    with faults.planted(options.fault) as planner, laboratory(planner) as lab:
        for path in options.replay:
            verdict = judge(lab, load(path))
            found[path.name] = vars(verdict)
            print(f"{path.name}: {verdict.difference or 'the same'}", flush=True)
    if options.summary:
        options.summary.write_text(json.dumps(found), encoding="utf-8")
    return int(any(verdict["difference"] for verdict in found.values()))


def _summary(totals: Totals) -> str:
    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda pair: -pair[1]))

    counts = totals.counts
    lines = [
        f"programs {totals.programs} in {totals.seconds:.0f} s (invalid {totals.invalid},"
        f" undetermined {totals.undetermined})",
        f"actions {totals.actions} (failed {totals.failed}), rows {totals.rows}, in another order {totals.reordered}",
        f"plans changed {counts['plansChanged']} of {counts['queries']},"
        f" stores {counts['commits']}, loads {counts['loads']}",
        f"differences {totals.differences}",
        f"all counters: {listed(counts)}",
        f"declines: {listed(totals.declines)}",
        f"operators: {listed(totals.operators)}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
