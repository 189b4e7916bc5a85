"""What happens between queries: the user's own caching, inputs that change, settings that change."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.fuzz import schemas
from tests.fuzz.programs import CONFS, Builder, _act, names_below


def _persist(builder: Builder) -> None:
    frame = builder.frame()
    builder.do("persist", f"{frame.name}.persist()")
    builder.persisted.append(frame.name)
    _act(builder)


def _unpersist(builder: Builder) -> None:
    if builder.persisted:
        builder.do("persist", f"{builder.choose(builder.persisted)}.unpersist(blocking=True)")
    else:
        _persist(builder)


def _cache_table(builder: Builder) -> None:
    name = builder.view(builder.frame())
    builder.do("persist", f"spark.sql('CACHE TABLE {name}')")
    _act(builder)
    if builder.chance(2):
        builder.do("persist", f"spark.sql('UNCACHE TABLE {name}')")


def _changed(builder: Builder) -> None:
    """An action, the change, mostly all frames anew, and the same action again."""
    _act(builder)
    action = builder.steps[-1]
    # One that the action reads.
    name = builder.choose(sorted(names_below(builder.steps, action["code"]) & set(builder.inputs)))
    spec = builder.inputs[name]
    spare = builder.draw(st.integers(schemas.INITIAL, schemas.FILES - 1))
    first = builder.draw(st.integers(0, spec["files"] - 1))
    ways = ["replace", "append", "delete", "overwrite"]
    if spec["format"] == "orc" and schemas.spread_over_files(type_ for _, type_ in schemas.columns(spec["schema"])):
        ways.remove("overwrite")
    if spec["table"]:
        ways = ["replace", "append", "insert"]
    if spec["table"] and spec["partitioned"]:
        ways = ["insert"]
    match builder.choose(ways):
        case "append":
            builder.do("change", f"inputs.append({name!r}, {spare})")
        case "replace":
            builder.do("change", f"inputs.replace({name!r}, {first}, {spare})")
        case "delete":
            builder.do("change", f"inputs.delete({name!r}, {first})")
        case "overwrite":
            builder.do("change", f"inputs.overwrite({name!r}, 'id % 3 <> 1')")
        case "insert":
            source = f"SELECT * FROM tab_{name} WHERE id % 5 = 0"
            builder.do("change", f"spark.sql('INSERT INTO tab_{name} {source}')")
    if not builder.chance(5):
        builder.again()
    builder.steps.append(action)


def _conf(builder: Builder) -> None:
    key = builder.choose(CONFS)
    builder.do("conf", f"spark.conf.set({key!r}, {builder.choose(CONFS[key])!r})")
    if builder.chance(2):
        builder.again()
    _act(builder)


CHANGES: tuple[Callable[[Builder], None], ...] = (
    _persist,
    _unpersist,
    _cache_table,
    _changed,
    _changed,
    _changed,
    _conf,
)
