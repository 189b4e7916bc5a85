"""Tables of the catalog.

`HEAD` is their revision, and goes up with every change of them: an older catalog is put aside, not changed, before 1.0.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

HEAD = "0011"
METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)
_DIGEST = String(64)


def _moments(name: str) -> list[Column[float]]:
    return [
        Column(f"{name}_count", Integer, nullable=False, default=0),
        Column(f"{name}_mean", Float, nullable=False, default=0.0),
        Column(f"{name}_m2", Float, nullable=False, default=0.0),
        Column(f"{name}_last", Float, nullable=False, default=0.0),
    ]


def _of_stages(name: str) -> Table:
    return Table(
        name,
        METADATA,
        Column("shape", _DIGEST, nullable=False),
        Column("lineage", _DIGEST, nullable=False),
        Column("body", LargeBinary, nullable=False),
        Column("last", Float, nullable=False),
        PrimaryKeyConstraint("shape", "lineage"),
    )


META = Table(
    "meta",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

OPERATOR = Table(
    "operator",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("lineage", _DIGEST, nullable=False),
    Column("kind", String(128), nullable=False),
    Column("shape", _DIGEST, nullable=False),
    Column("core", _DIGEST, nullable=False),
    Column("conjuncts", Text, nullable=False),
    Column("columns", Text, nullable=False),
    *_moments("rows"),
    *_moments("bytes"),
    *_moments("seconds"),
    *_moments("total"),
    Column("demands", Integer, nullable=False, default=0),
    Column("executions", Integer, nullable=False, default=0),
    Column("last", Float, nullable=False, default=0.0),
    UniqueConstraint("lineage", "kind", "shape"),
    Index(None, "core", "last"),
)

RUN = Table(
    "run",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("application", String(256), nullable=False, unique=True),
    Column("name", String(256), nullable=False, default=""),
    Column("started", Float, nullable=False),
    Column("ended", Float),
    Column("heartbeat", Float, nullable=False),
    Column("queries", Integer, nullable=False, default=0),
    Column("owner_host", String(256), nullable=False, default=""),
    Column("owner_pid", Integer, nullable=False, default=0),
)

EDGE = Table(
    "edge",
    METADATA,
    Column("child", _DIGEST, nullable=False),
    Column("parent", _DIGEST, nullable=False),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
    Column("occurrences", Integer, nullable=False, default=0),
    PrimaryKeyConstraint("child", "parent", "run_id"),
    Index(None, "run_id"),
)

STEP = Table(
    "step",
    METADATA,
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("run_id", "position"),
)

STAGE, STAGE_KEYS = _of_stages("stage"), _of_stages("stage_keys")

TIMED_STAGE = Table(
    "timed_stage",
    METADATA,
    Column("machine", String(128), nullable=False),
    Column("shape", _DIGEST, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("last", Float, nullable=False),
    PrimaryKeyConstraint("machine", "shape"),
)

WRITTEN = Table(
    "written",
    METADATA,
    Column("listing", _DIGEST, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("last", Float, nullable=False),
)

SOURCE = Table(
    "source",
    METADATA,
    Column("relation", _DIGEST, nullable=False),
    Column("source", _DIGEST, nullable=False),
    Column("last", Float, nullable=False),
    PrimaryKeyConstraint("relation", "source"),
)

ENTRY = Table(
    "entry",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("lineage", _DIGEST, nullable=False),
    Column("core", _DIGEST, nullable=False),
    Column("conjuncts", Text, nullable=False),
    Column("predicates", Text, nullable=False, default="[]"),
    Column("columns", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("rows", BigInteger, nullable=False, default=0),
    Column("bytes", BigInteger, nullable=False, default=0),
    Column("created", Float, nullable=False),
    Column("used", Float, nullable=False),
    Column("uses", Integer, nullable=False, default=0),
    Column("recent_uses", Float, nullable=False, default=1.0),
    Column("net_benefit", Float),
    Column("pinned", Boolean, nullable=False, default=False),
    Column("recompute_seconds", Float, nullable=False, default=0.0),
    Column("predicted_seconds", Float, nullable=False, default=0.0),
    Column("measured_seconds", Float, nullable=False, default=0.0),
    Column("measured_uses", Integer, nullable=False, default=0),
    Column("estimated_seconds", Float, nullable=False, default=0.0),
    Column("contradictions", Integer, nullable=False, default=0),
    Column("application", String(256), nullable=False, default=""),
    Column("query", BigInteger, nullable=False, default=0),
    Column("operator", String(128), nullable=False, default=""),
    Column("reason", Text, nullable=False, default=""),
    Column("owner_host", String(256), nullable=False, default=""),
    Column("owner_pid", Integer, nullable=False, default=0),
    Column("base", _DIGEST, nullable=False, default=""),
    Column("grouping", Text, nullable=False, default=""),
    Column("grows", _DIGEST, nullable=False, default=""),
    Column("growth", Text, nullable=False, default=""),
    Index(None, "core"),
    Index(None, "base"),
    Index(None, "grows"),
    Index(None, "lineage"),
    Index(None, "state", "bytes"),
)

ENTRY_USE = Table(
    "entry_use",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("entry", String(64), nullable=False),
    Column("application", String(256), nullable=False),
    Column("query", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("saved", Float, nullable=False),
    Column("measured", Boolean, nullable=False),
    Index(None, "entry"),
)

SWITCHED_OFF = Table(
    "switched_off",
    METADATA,
    Column("lineage", _DIGEST, primary_key=True),
    Column("detail", Text, nullable=False),
    Column("application", String(256), nullable=False),
    Column("since", Float, nullable=False),
)

TIED = Table(
    "tied",
    METADATA,
    Column("digest", _DIGEST, primary_key=True),
    Column("since", Float, nullable=False),
)

LEASE = Table(
    "lease",
    METADATA,
    Column("entry", String(64), nullable=False),
    Column("application", String(256), nullable=False),
    Column("query", BigInteger, nullable=False),
    Column("heartbeat", Float, nullable=False),
    PrimaryKeyConstraint("entry", "application", "query"),
    Index(None, "application"),
)

CALIBRATION = Table(
    "calibration",
    METADATA,
    Column("location", String(512), nullable=False),
    Column("name", String(64), nullable=False),
    Column("value", Float, nullable=False),
    Column("updated", Float, nullable=False),
    PrimaryKeyConstraint("location", "name"),
)
