"""The heaviest keys of reduce stages.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "stage_keys",
        sa.Column("shape", sa.String(length=64), nullable=False),
        sa.Column("lineage", sa.String(length=64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("last", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("shape", "lineage", name=op.f("pk_stage_keys")),
    )


def downgrade() -> None:
    op.drop_table("stage_keys")
