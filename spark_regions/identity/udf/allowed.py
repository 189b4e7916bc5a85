"""The reviewed lists of what is pure in libraries: one file a family, in `lists/`.

A file has sections, and lines of names in each:

    library pandas 2            distribution and the major versions that were reviewed; without it, Python's own
    module math                 names of the module: functions, classes, constants
      pure: sqrt pi
      rule constant-seed: Random
    class decimal.Decimal       attributes of instances, and of the class itself
      pure: quantize
      unproven: …               what instances have beside them: may be met on a value of unknown type

`constants` of a module are plain values; `scalars` return what holds nothing of their arguments; `changes` are
pure but for changing their receiver or first argument; `passes` may return an argument itself; `iterators` return
something that iterating over uses up; `immutable` are classes whose instances never change; `inputs N` write into what
comes after N arguments; `returns X` give instances of X; `pickles` are what objects are made by when a pickle is read;
`aliases` are other modules with the same names; `dispatched` are methods that others call by their name.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from spark_regions.identity.udf.modules import distribution

LISTS = Path(__file__).with_name("lists")


@dataclass(slots=True)
class Allowed:
    """What the lists say.

    :param names: dotted names that are pure, and how they must be called ("" for anyhow)
    :param modules: modules that have an entry
    :param attributes: pure attribute names of instances, over all classes
    :param rules: how an attribute of that name must be called
    :param unproven: attribute names that some class has and that are not pure there
    """

    names: dict[str, str] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    rules: dict[str, str] = field(default_factory=dict)
    unproven: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    passes: set[str] = field(default_factory=set)
    iterators: set[str] = field(default_factory=set)
    immutable: set[str] = field(default_factory=set)
    pickles: set[str] = field(default_factory=set)
    scalars: set[str] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)
    every: set[str] = field(default_factory=set)
    changing_every: set[str] = field(default_factory=set)
    dispatched: set[str] = field(default_factory=set)
    inputs: dict[str, int] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    returns: dict[str, str] = field(default_factory=dict)
    guarded: dict[str, frozenset[str]] = field(default_factory=dict)

    def rule(self, path: str) -> str | None:
        """How what has the dotted name must be called; None where it is not listed."""
        return self.names.get(path)

    def has(self, path: str) -> bool:
        return path in self.names or path in self.modules

    def is_pure_on_all(self, attribute: str) -> bool:
        """Whether an attribute of this name is pure on every type that a value of unknown type may have."""
        return attribute in self.attributes and attribute not in self.unproven

    def may_be_a_field(self, attribute: str) -> bool:
        """Whether no type of a library has it, so that it names a field of a row or of a class of the user's."""
        return attribute not in self.unproven and not attribute.startswith("_")


@functools.cache
def allowed() -> Allowed:
    """All lists whose libraries are here in a version that was reviewed."""
    found = Allowed()
    for path in sorted(LISTS.glob("*.txt")):
        _read(path.read_text(encoding="utf-8"), found)
    # Pure on one class and not on another: not pure on a value of unknown type.
    found.attributes -= found.unproven
    return found


def sections(text: str) -> list[tuple[str, str, dict[str, list[str]]]]:
    """(kind, name, names by key) of each section of a list."""
    found: list[tuple[str, str, dict[str, list[str]]]] = []
    key = ""
    for line in text.splitlines():
        line = line.split("#", 1)[0].rstrip()
        if not line:
            continue
        if not line.startswith(" "):
            kind, _, name = line.partition(" ")
            found.append((kind, name, defaultdict(list)))
            key = ""
            continue
        head, colon, rest = line.partition(":")
        if colon:
            key = head.strip()
            line = rest
        found[-1][2][key].extend(line.split())
    return found


def _read(text: str, found: Allowed) -> None:
    fits = True
    for kind, name, names in sections(text):
        if kind == "library":
            top, *majors = name.split()
            fits = _major(top) in majors
        elif fits:
            _section(kind, name, names, found)


def _section(kind: str, name: str, names: dict[str, list[str]], found: Allowed) -> None:
    if kind == "every":
        found.every.update(names["pure"])
        found.changing_every.update(names["changes"])
        return
    if kind == "module":
        found.modules.add(name)
    found.dispatched.update(names.get("dispatched", ()))
    found.pickles.update(names.get("pickles", ()))
    for key, listed in names.items():
        if key == "unproven":
            found.unproven.update(listed)
            continue
        rule = key.removeprefix("rule ") if key.startswith("rule ") else ""
        for each in listed:
            path = f"{name}.{each}"
            if key == "dispatched":
                continue
            if key == "aliases":
                found.aliases[each] = name
                continue
            if key.startswith("inputs "):
                found.inputs[path] = int(key.removeprefix("inputs "))
                continue
            if key.startswith("returns "):
                found.returns[path] = key.removeprefix("returns ")
            if key != "pickles":
                found.names[path] = rule
            if kind == "class":
                if rule:
                    found.rules[each] = rule
                else:
                    found.attributes.add(each)
            if key in ("changes", "passes", "iterators", "immutable", "constants", "scalars"):
                target = getattr(found, key)
                target.add(path)
                if kind == "class":
                    target.add(each)
    if kind == "guarded":
        found.guarded[name] = frozenset(each for listed in names.values() for each in listed)


def _major(top: str) -> str:
    named = distribution(top)
    if named is None:
        return ""
    try:
        return importlib.metadata.version(named.rpartition(" ")[0]).split(".")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""
