"""The first catalog.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "calibration",
        sa.Column("location", sa.String(length=512), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("updated", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("location", "name", name=op.f("pk_calibration")),
    )
    op.create_table(
        "entry",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("lineage", sa.String(length=64), nullable=False),
        sa.Column("core", sa.String(length=64), nullable=False),
        sa.Column("conjuncts", sa.Text(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("used", sa.Float(), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("recompute_seconds", sa.Float(), nullable=False),
        sa.Column("predicted_seconds", sa.Float(), nullable=False),
        sa.Column("measured_seconds", sa.Float(), nullable=False),
        sa.Column("contradictions", sa.Integer(), nullable=False),
        sa.Column("application", sa.String(length=256), nullable=False),
        sa.Column("query", sa.BigInteger(), nullable=False),
        sa.Column("operator", sa.String(length=128), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("owner_host", sa.String(length=256), nullable=False),
        sa.Column("owner_pid", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entry")),
    )
    op.create_index(op.f("ix_entry_core"), "entry", ["core"], unique=False)
    op.create_index(op.f("ix_entry_lineage"), "entry", ["lineage"], unique=False)
    op.create_table(
        "lease",
        sa.Column("entry", sa.String(length=64), nullable=False),
        sa.Column("application", sa.String(length=256), nullable=False),
        sa.Column("query", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("entry", "application", "query", name=op.f("pk_lease")),
    )
    op.create_index(op.f("ix_lease_application"), "lease", ["application"], unique=False)
    op.create_table(
        "meta",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_meta")),
    )
    op.create_table(
        "operator",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("lineage", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=128), nullable=False),
        sa.Column("shape", sa.String(length=64), nullable=False),
        sa.Column("core", sa.String(length=64), nullable=False),
        sa.Column("conjuncts", sa.Text(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.Column("rows_count", sa.Integer(), nullable=False),
        sa.Column("rows_mean", sa.Float(), nullable=False),
        sa.Column("rows_m2", sa.Float(), nullable=False),
        sa.Column("rows_last", sa.Float(), nullable=False),
        sa.Column("bytes_count", sa.Integer(), nullable=False),
        sa.Column("bytes_mean", sa.Float(), nullable=False),
        sa.Column("bytes_m2", sa.Float(), nullable=False),
        sa.Column("bytes_last", sa.Float(), nullable=False),
        sa.Column("seconds_count", sa.Integer(), nullable=False),
        sa.Column("seconds_mean", sa.Float(), nullable=False),
        sa.Column("seconds_m2", sa.Float(), nullable=False),
        sa.Column("seconds_last", sa.Float(), nullable=False),
        sa.Column("total_count", sa.Integer(), nullable=False),
        sa.Column("total_mean", sa.Float(), nullable=False),
        sa.Column("total_m2", sa.Float(), nullable=False),
        sa.Column("total_last", sa.Float(), nullable=False),
        sa.Column("demands", sa.Integer(), nullable=False),
        sa.Column("executions", sa.Integer(), nullable=False),
        sa.Column("last", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operator")),
        sa.UniqueConstraint("lineage", "kind", "shape", name=op.f("uq_operator_lineage_kind_shape")),
    )
    op.create_index(op.f("ix_operator_core_last"), "operator", ["core", "last"], unique=False)
    op.create_table(
        "operator_column",
        sa.Column("core", sa.String(length=64), nullable=False),
        sa.Column("column", sa.String(length=64), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("last", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("core", "column", name=op.f("pk_operator_column")),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("application", sa.String(length=256), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("started", sa.Float(), nullable=False),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.Column("heartbeat", sa.Float(), nullable=False),
        sa.Column("queries", sa.Integer(), nullable=False),
        sa.Column("owner_host", sa.String(length=256), nullable=False),
        sa.Column("owner_pid", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("application", name=op.f("uq_run_application")),
    )
    op.create_table(
        "edge",
        sa.Column("child", sa.String(length=64), nullable=False),
        sa.Column("parent", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("occurrences", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_edge_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("child", "parent", "run_id", name=op.f("pk_edge")),
    )
    op.create_index(op.f("ix_edge_run_id"), "edge", ["run_id"], unique=False)
    meta = sa.table("meta", sa.column("name"), sa.column("value"))
    op.bulk_insert(meta, [{"name": "changes", "value": 0}])


def downgrade() -> None:
    op.drop_index(op.f("ix_edge_run_id"), table_name="edge")
    op.drop_table("edge")
    op.drop_table("run")
    op.drop_table("operator_column")
    op.drop_index(op.f("ix_operator_core_last"), table_name="operator")
    op.drop_table("operator")
    op.drop_table("meta")
    op.drop_index(op.f("ix_lease_application"), table_name="lease")
    op.drop_table("lease")
    op.drop_index(op.f("ix_entry_lineage"), table_name="entry")
    op.drop_index(op.f("ix_entry_core"), table_name="entry")
    op.drop_table("entry")
    op.drop_table("calibration")
