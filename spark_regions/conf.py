"""Every `spark.regions.*` key: type, default, unit, when it can be changed, and what it does.

`docs/configuration.md` is generated from here, and so is `confs.json`, from which the shim registers the keys with
Spark (`SQLConf.buildConf`), so that `SET -v` lists them and a wrong value is refused where it is set.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

PREFIX = "spark.regions."

Kind = Literal["bool", "int", "share", "number", "string", "time", "bytes"]
When = Literal["startup", "runtime"]
Value = bool | int | float | str | None

_SECOND = 1_000_000
_MICROSECONDS = {
    "us": 1,
    "ms": 1000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "min": 60 * _SECOND,
    "h": 3600 * _SECOND,
    "d": 86_400 * _SECOND,
}
_BYTES = {"b": 1, **{unit: 1024**power for power, letter in enumerate("kmgtp", 1) for unit in (letter, letter + "b")}}
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_QUANTITY = re.compile(r"([0-9]+)([a-z]*)")


@dataclass(frozen=True, slots=True)
class Conf:
    """One key.

    `default` is text as in a properties file. `unit` is that of the parsed value, of `minimum`, and of a bare number.
    A `pattern` must match the whole text. Installed packages can add to `open` choices.
    """

    key: str
    kind: Kind
    default: str
    when: When
    doc: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    pattern: str = ""
    aliases: tuple[str, ...] = ()
    open: bool = False

    @property
    def name(self) -> str:
        return self.key.removeprefix(PREFIX)

    @property
    def expected(self) -> str:
        """What a value must look like."""
        if self.choices:
            more = ", or what an installed package adds" if self.open else ""
            return "one of " + ", ".join(self.choices) + more
        if self.pattern:
            return "a plain folder name"
        limit = {None: "", 0: ", not negative", 1: ", above 0"}.get(self.minimum, f", at least {self.minimum}")
        return {
            "bool": "true or false",
            "int": "a whole number",
            "share": "a number from 0 to 1",
            "number": "a number such as 0.05, not negative",
            "string": "text",
            "time": "a time such as 200ms, 5s or 7d",
            "bytes": "a size such as 512m or 10g",
        }[self.kind] + limit

    @property
    def requirement(self) -> str:
        """What Spark says of a value that is of the right type and not allowed."""
        if self.pattern:
            return f"must be {self.expected}"
        if self.kind == "share":
            return "must be from 0 to 1"
        if self.kind == "number":
            return "must not be negative"
        limits = {None: "", 0: "must not be negative", 1: "must be greater than 0"}
        return limits.get(self.minimum, f"must be at least {self.minimum}")

    def parse(self, text: str) -> Value:
        """The value in its unit; None for an empty optional number.

        Errors: `ValueError` with what was expected.

        >>> find("spark.regions.planner.deadline").parse("5s")
        5000
        >>> find("spark.regions.recycle.maxBytes").parse("10g")
        10737418240
        """
        value = text.strip()
        if self.kind == "string":
            value = value.lower() if self.choices else value
            if (self.choices and value not in self.choices) or not re.fullmatch(self.pattern or ".*", value):
                raise ValueError(self.expected)
            return value
        if value == "" and self.default == "":
            return None
        if self.kind == "share":
            if not re.fullmatch(r"0(\.[0-9]*)?|1(\.0*)?|\.[0-9]+", value):
                raise ValueError(self.expected)
            return float(value)
        if self.kind == "number":
            if not re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", value):
                raise ValueError(self.expected)
            return float(value)
        number = self._number(value.lower())
        if number is None or (self.minimum is not None and number < self.minimum):
            raise ValueError(self.expected)
        return number

    def _number(self, value: str) -> bool | int | None:
        if self.kind == "bool":
            return {"true": True, "false": False}.get(value)
        if self.kind == "int":
            return int(value) if re.fullmatch(r"-?[0-9]+", value) else None
        match = _QUANTITY.fullmatch(value)
        if match is None:
            return None
        units = _MICROSECONDS if self.kind == "time" else _BYTES
        scale = units.get(match[2] or self.unit)
        return None if scale is None else int(match[1]) * scale // units[self.unit]


@dataclass(frozen=True, slots=True)
class Problem:
    """A key or value that is not understood: what was found, what was expected, what to do."""

    key: str
    found: str
    expected: str
    hint: str

    def __str__(self) -> str:
        return f"{self.key}: found {self.found}, expected {self.expected}. Hint: {self.hint}"


CONFS: tuple[Conf, ...] = (
    Conf(
        "spark.regions.enabled",
        "bool",
        "false",
        "startup",
        "Whether the queries of the application are observed and changed. Where `spark.plugins` or"
        " `spark.sql.extensions` name our class, that counts as true unless this key says false. For a single session,"
        " `spark.regions.mode=observe` leaves plans alone.",
    ),
    Conf(
        "spark.regions.mode",
        "string",
        "apply",
        "runtime",
        "`apply` changes plans; `observe` only records what ran and what would have been decided.",
        choices=("apply", "observe"),
    ),
    Conf(
        "spark.regions.strict",
        "bool",
        "false",
        "runtime",
        "Raise our own errors instead of falling back to the plain plan. For tests and CI, not for production.",
    ),
    Conf(
        "spark.regions.planner.python",
        "string",
        "",
        "startup",
        "Python that runs the planner; it must have this package installed. Empty:"
        " `PYSPARK_DRIVER_PYTHON`, `PYSPARK_PYTHON`, `spark.pyspark.driver.python`, `spark.pyspark.python`, the Python"
        " that started the driver, or `python3`.",
    ),
    Conf(
        "spark.regions.planner.deadline",
        "time",
        "200ms",
        "startup",
        "How long a query waits for a decision before it runs unchanged; a millisecond more for each two operators, "
        "and four for each where another engine may take parts. "
        "Where decisions of late have saved more than ten times as long: a tenth of that, at most 2s. Until the first "
        "decision, of a planner that may be opening its store: 2s. 0: never wait.",
        unit="ms",
        minimum=0,
    ),
    Conf(
        "spark.regions.planner.startupDeadline",
        "time",
        "5s",
        "startup",
        "How long the first queries wait for the planner to start; then they run unchanged.",
        unit="ms",
        minimum=0,
    ),
    Conf(
        "spark.regions.udf.trustedModules",
        "string",
        "",
        "startup",
        "Python modules, separated by commas, that you vouch for: what they give depends on arguments alone. Their"
        " submodules are included. They are told apart by the version of what is installed, or by their content.",
    ),
    Conf(
        "spark.regions.recycle.enabled",
        "bool",
        "true",
        "runtime",
        "Whether results are stored for, and loaded from, other queries and applications.",
    ),
    Conf(
        "spark.regions.recycle.dir",
        "string",
        "",
        "startup",
        "Folder of the store, on any file system that Spark can write. Empty: `~/.spark_regions`. On a cluster it has"
        " to be reachable from the driver and every executor.",
    ),
    Conf(
        "spark.regions.recycle.catalog",
        "string",
        "",
        "startup",
        "SQLAlchemy URL of the catalog. Empty: an SQLite file in the store's folder (one machine). Use PostgreSQL where"
        " drivers run on several machines.",
    ),
    Conf(
        "spark.regions.recycle.maxBytes",
        "bytes",
        "10g",
        "runtime",
        "Hard limit for the stored files of a namespace. 0: nothing new is stored.",
        unit="b",
        minimum=0,
    ),
    Conf(
        "spark.regions.recycle.ttl",
        "time",
        "7d",
        "runtime",
        "An entry that was not read for this long is removed.",
        unit="s",
        minimum=0,
    ),
    Conf(
        "spark.regions.recycle.strategy",
        "string",
        "markov",
        "runtime",
        "Who decides what to store. `markov`: expected uses from observed sequences; `maxbenefit`: largest benefit of"
        " the query at hand; `latest`: the last eligible point; `always`: store and load at every eligible point (for"
        " tests); `off`: store nothing, load nothing. Installed packages can add names by the entry point group"
        " `spark_regions.strategies`.",
        choices=("markov", "maxbenefit", "latest", "always", "off"),
        open=True,
    ),
    Conf(
        "spark.regions.recycle.window",
        "int",
        "20",
        "runtime",
        "Number of past runs of an application over which frequencies of use are counted.",
        minimum=1,
    ),
    Conf(
        "spark.regions.recycle.firstUseOverhead",
        "share",
        "0.1",
        "runtime",
        "A DataFrame that the program still holds is stored while the first query built on it runs, before any use of "
        "it is known, if that adds at most this share to the query's own work; else it is given up half-way, once it "
        "stays above the share for two seconds, or at twice the share. The rows at the top of a query are stored "
        "likewise, if tasks can hold them in memory. What another engine saves in the query may be spent beside the "
        "share. Where earlier runs of the application wrote more for DataFrames of the same operators than reading "
        "them saved, it is not tried again; what the program caches itself is not, either. 0 waits for the second use.",
    ),
    Conf(
        "spark.regions.recycle.namespace",
        "string",
        "",
        "startup",
        "Entries are shared inside a namespace only. Empty: the user that runs the application.",
        pattern=r"([^./\\][^/\\]*)?",
    ),
    Conf(
        "spark.regions.recycle.floatAggregates",
        "bool",
        "true",
        "runtime",
        "Whether sums, averages, variances and correlations of floating-point numbers are stored. Plain Spark may give"
        " other last digits on every run, as they depend on the order of rows; what is read has those of the run that"
        " stored it.",
    ),
    Conf(
        "spark.regions.recycle.rowOrder",
        "string",
        "plain",
        "runtime",
        "`plain`: rows come in the order in which plain Spark gives them, also where no ORDER BY says which, unless"
        " another engine may compute them (`platforms`). `any`: more is read back, and where no ORDER BY decides, rows"
        " may come in another order.",
        choices=("plain", "any"),
    ),
    Conf(
        "spark.regions.sources.verify",
        "string",
        "listing",
        "runtime",
        "How a source file is known again. `listing`: by path, length, time, and the tag that an object store lists it"
        " with. `footer`: also by the checksum that its file system keeps; without one by the footer of Parquet and"
        " ORC files, or by the content of other files (up to 64 MiB of a relation). See"
        " [what each can see](refusals.md).",
        choices=("listing", "footer"),
    ),
    Conf(
        "spark.regions.sources.racySeconds",
        "int",
        "2",
        "runtime",
        "Nothing is stored of what is read from files younger than this, since they may be written again without their"
        " time changing. It has to be as long as the file system's times are coarse, plus what its clock is behind the"
        " driver's. 0: files of any age, for tests.",
        minimum=0,
    ),
    Conf(
        "spark.regions.verify.fraction",
        "share",
        "0",
        "runtime",
        "Share of the queries with something read or shared that run both ways: once they have ended, the driver"
        " runs them again as decided and as plain Spark, and compares rows and seconds; the next query waits for that."
        " Of a query whose rows differ nothing is read or stored again (`spark-regions cache off`). Only queries that"
        " collect rows, no writes. See [verified savings](reports.md#verified).",
    ),
    Conf(
        "spark.regions.sources.written",
        "bool",
        "true",
        "runtime",
        "Whether Parquet and ORC files that a query writes are known by the rows written when they are read back,"
        " whatever they are called: see [through files](files.md).",
    ),
    Conf(
        "spark.regions.sharing.enabled",
        "bool",
        "true",
        "runtime",
        "Whether a subplan that stands in several places of a query, perhaps with other columns and filters in each, "
        "is computed once where that pays for the shuffle that it takes: judged by how often Spark computed it in an "
        "earlier run, or by the size of its sources.",
    ),
    Conf(
        "spark.regions.sweeps.enabled",
        "bool",
        "true",
        "runtime",
        "Whether a plan that runs again in the same application with other literals, or other values in a Python "
        "function, counts as a loop: what its iterations have in common is kept from the second one on where as many "
        "more iterations would pay for it. See [loops that nobody rewrote](explore.md#loops-that-nobody-rewrote).",
    ),
    Conf(
        "spark.regions.codeReuse.enabled",
        "bool",
        "true",
        "runtime",
        "Whether Spark's generated code takes numbers and dates of a query as values in place of having them written"
        " into it, so that a query that differs in them only from an earlier one runs the code that was compiled for"
        " that one. See [compiled once](explore.md#compiled-once).",
    ),
    Conf(
        "spark.regions.workflow.enabled",
        "bool",
        "true",
        "runtime",
        "Whether the queries of an application's last run are looked at as a whole, so that a result that later "
        "queries will use is kept from its first use until its last one.",
    ),
    Conf(
        "spark.regions.skew.enabled",
        "bool",
        "true",
        "runtime",
        "Whether the tasks of a skewed reduce stage are arranged otherwise where Spark's adaptive execution leaves them"
        " alone. Nothing happens without adaptive execution.",
    ),
    Conf(
        "spark.regions.skew.strategy",
        "string",
        "cost",
        "runtime",
        "When a stage is arranged otherwise: `cost` (the predicted time is worth it) or `always` (sizes alone count, "
        "however small; for tests).",
        choices=("cost", "always"),
    ),
    Conf(
        "spark.regions.skew.keys",
        "bool",
        "true",
        "runtime",
        "Whether the keys of every sixteenth row of skewed partitions are counted where the stage is arranged"
        " otherwise, and the heaviest shown by their values, redacted as Spark redacts plans.",
    ),
    Conf(
        "spark.regions.skew.floatAggregates",
        "bool",
        "false",
        "runtime",
        "Whether tasks are arranged otherwise also where a sum, an average, a variance or a correlation of"
        " floating-point numbers then gets other last digits than in plain Spark.",
    ),
    Conf(
        "spark.regions.persist.enabled",
        "bool",
        "true",
        "runtime",
        "Whether results that the same session soon needs again are persisted by Spark's block manager.",
    ),
    Conf(
        "spark.regions.persist.maxBytes",
        "bytes",
        "",
        "runtime",
        "Limit for what we persist. Empty: a quarter of the storage memory, all of it for `explore` and `run`.",
        unit="b",
        minimum=0,
    ),
    Conf(
        "spark.regions.platforms",
        "string",
        "auto",
        "runtime",
        "Which other engine may compute parts of a query, with rows proven equal: `auto` (DuckDB, where it is installed"
        " and is expected to be faster), `duckdb` (wherever it can, for tests) or `off`. Where it fails, Spark runs.",
        choices=("auto", "duckdb", "off"),
    ),
    Conf(
        "spark.regions.platforms.maxInputBytes",
        "bytes",
        "16g",
        "runtime",
        "What another engine, which runs on the driver's machine alone, may be given to read for one part of a query.",
        unit="b",
        minimum=0,
    ),
    Conf(
        "spark.regions.platforms.maxResultBytes",
        "bytes",
        "256m",
        "runtime",
        "Limit for the rows of such a part, which come back through the driver.",
        unit="b",
        minimum=0,
    ),
    Conf(
        "spark.regions.platforms.memory",
        "bytes",
        "",
        "startup",
        "Memory of another engine's process. Empty: a third of what it would take by itself.",
        unit="b",
        minimum=1,
    ),
    Conf(
        "spark.regions.platforms.maxTempBytes",
        "bytes",
        "",
        "startup",
        "What another engine may write to the disk of what does not fit into its memory. Empty: as much as it would by "
        "itself.",
        unit="b",
        minimum=0,
    ),
    Conf(
        "spark.regions.platforms.timeout",
        "time",
        "10m",
        "runtime",
        "Longer than that, or than three times what Spark is expected to take (30 s at least), another engine is not "
        "waited for, and Spark runs.",
        unit="ms",
        minimum=1,
    ),
    Conf(
        "spark.regions.platforms.floatSums",
        "bool",
        "false",
        "runtime",
        "Whether another engine may also add up floating-point numbers, whose last digits depend on the order of rows.",
    ),
    Conf(
        "spark.regions.control.onBadRow",
        "string",
        "fail",
        "runtime",
        "What becomes of a row on which a Python function, a cast, another expression or a parser fails: `fail` (the"
        " task does, as in plain Spark), `null` (the failed value is null), `skip` (the row is left out),"
        " `quarantine` (left out, and kept in a table) or `pause` (all stands, and a person is asked; with"
        " `control.enabled`). With other than `fail`, results are read, but none is stored,"
        " shared or computed by another engine. See [bad rows](bad_rows.md).",
        choices=("fail", "null", "skip", "quarantine", "pause"),
    ),
    Conf(
        "spark.regions.control.maxBadRows",
        "int",
        "",
        "runtime",
        "With more bad rows than this a query fails after all. Empty: any number.",
        minimum=0,
    ),
    Conf(
        "spark.regions.control.quarantinePath",
        "string",
        "",
        "runtime",
        "Folder for the rows of `onBadRow=quarantine`, as JSON, on any file system that the driver and the executors"
        " can write. Empty: below `recycle.dir`, one for each namespace.",
    ),
    Conf(
        "spark.regions.control.splitBatches",
        "bool",
        "false",
        "runtime",
        "Whether `onBadRow` also counts for functions that take many rows at once (pandas and Arrow functions,"
        " mapInPandas, mapInArrow): after a failure they are called again with parts of the batch, down to single rows."
        " Right only where what they make of a row depends on that row alone.",
    ),
    Conf(
        "spark.regions.price.coreHour",
        "number",
        "",
        "startup",
        "What an hour of one core costs, in any currency. With it, results are read, stored and kept by the money that"
        " they save less what they cost, no longer by seconds alone. Empty: by seconds. See [money](savings.md#money).",
    ),
    Conf(
        "spark.regions.price.gbMonth",
        "number",
        "",
        "startup",
        "What holding 10^9 bytes of stored results for a month costs, in the same currency.",
    ),
    Conf(
        "spark.regions.price.gbRead",
        "number",
        "",
        "startup",
        "What reading 10^9 bytes of stored results costs beside the cores' time, as from an object store.",
    ),
    Conf(
        "spark.regions.control.enabled",
        "bool",
        "false",
        "startup",
        "Whether running queries can be paused, looked into and stopped at breakpoints, for which their plans get"
        " operators that count rows. See [control](control.md).",
    ),
    Conf(
        "spark.regions.control.replaceFunctions",
        "bool",
        "false",
        "runtime",
        "Whether Python functions of queries that start from now on can be replaced while these run, with"
        " `control.enabled`; each row then carries a number to the Python worker. See"
        " [control](control.md#python-functions).",
    ),
    Conf(
        "spark.regions.control.pauseTimeout",
        "time",
        "10m",
        "startup",
        "A paused application goes on by itself after so long.",
        unit="ms",
        minimum=1,
    ),
    Conf(
        "spark.regions.control.countWait",
        "time",
        "5ms",
        "startup",
        "At a breakpoint that counts or sums up the rows of all tasks: how long one that has used up its share waits"
        " for the others before what remains is shared out again.",
        unit="ms",
        minimum=0,
    ),
    Conf(
        "spark.regions.explain.format",
        "string",
        "text",
        "runtime",
        "Section of ours in EXPLAIN and `df.explain()`: `text`, `json` or `off`.",
        choices=("text", "json", "off"),
    ),
    Conf(
        "spark.regions.ui.enabled",
        "bool",
        "true",
        "startup",
        "Whether what is decided, and what comes of it, is shown in a tab of Spark's UI and written to the event log.",
    ),
)

_BY_KEY = {name: conf for conf in CONFS for name in (conf.key, *conf.aliases)}


def find(key: str) -> Conf | None:
    """The registered key, also by an older name."""
    return _BY_KEY.get(key)


def value_of(name: str, settings: Mapping[str, str]) -> Value:
    """What a registered key is set to, or its default.

    >>> value_of("planner.deadline", {"spark.regions.planner.deadline": "5s"})
    5000

    :param name: without the prefix; keys of `settings` may have it
    """
    conf = _BY_KEY[PREFIX + name]
    return conf.parse(settings.get(conf.key, settings.get(name, conf.default)))


def closest(key: str) -> str | None:
    """The registered key that `key` most likely means.

    >>> closest("spark.regions.recycle.maxbyte")
    'spark.regions.recycle.maxBytes'
    """
    lowered = {known.lower(): known for known in _BY_KEY}
    matches = difflib.get_close_matches(key.lower(), lowered, n=1, cutoff=0.7)
    return lowered[matches[0]] if matches else None


def validate(settings: Mapping[str, str], *, strategies: frozenset[str] = frozenset()) -> tuple[Problem, ...]:
    """What is wrong with the `spark.regions.*` keys of `settings`; other keys are not looked at.

    `strategies`: names that installed packages add to `recycle.strategy`.

    >>> print(*validate({"spark.regions.recycle.maxBytes": "-1"}))
    spark.regions.recycle.maxBytes: found '-1', expected a size such as 512m or 10g, not negative. \
Hint: the default is 10g
    """
    problems = []
    for key, text in settings.items():
        if not key.startswith(PREFIX):
            continue
        conf = _BY_KEY.get(key)
        if conf is None:
            likely = closest(key)
            hint = f"did you mean {likely}?" if likely else "`spark-regions conf` lists all keys"
            problems.append(Problem(key, "an unknown key", "a spark.regions key", hint))
            continue
        if conf.name == "recycle.strategy" and text in strategies:
            continue
        try:
            conf.parse(text)
        except ValueError as error:
            problems.append(Problem(key, repr(text), str(error), _value_hint(conf, text)))
    return tuple(problems)


def _value_hint(conf: Conf, text: str) -> str:
    near = difflib.get_close_matches(text.lower(), conf.choices, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"the default is {conf.default}" if conf.default else "leave it out for the default"


def markdown() -> str:
    """`docs/configuration.md`."""
    lines = [
        "# Configuration",
        "",
        "Generated by `python -m spark_regions conf --markdown`; do not edit.",
        "",
        "Set keys like any of Spark's: `spark-defaults.conf`, `--conf`, `SparkSession.builder.config`, and those marked"
        " *runtime* also by `spark.conf.set` or SQL `SET`. *startup* keys count when the application starts. `SET -v`"
        " lists them all. Times take `ms`, `s`, `m`, `h`, `d`; sizes `k`, `m`, `g`, `t` (powers of 1024).",
        "",
        "| key | type | default | when | meaning |",
        "|---|---|---|---|---|",
    ]
    for conf in CONFS:
        kind = " \\| ".join(f"`{choice}`" for choice in conf.choices) or conf.kind
        default = f"`{conf.default}`" if conf.default else "(empty)"
        also = f" Older names: {', '.join(conf.aliases)}." if conf.aliases else ""
        lines.append(f"| `{conf.key}` | {kind} | {default} | {conf.when} | {conf.doc}{also} |")
    return "\n".join(lines) + "\n"


def registry() -> str:
    """The table as the JSON file that the shim registers the keys from, a line for each; the build writes it."""
    lines = [
        json.dumps(asdict(conf) | {"doc": _LINK.sub(r"\1", conf.doc), "requirement": conf.requirement})
        for conf in CONFS
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"
