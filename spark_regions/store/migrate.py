"""Alembic, loaded only when a catalog is not at the newest revision."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def known_revisions() -> frozenset[str]:
    return frozenset(script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def upgrade(engine: sa.Engine, revision: str = "head") -> None:
    """Run the migrations up to `revision`."""
    config = _config()
    with engine.execution_options(regions_write=60_000).connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
