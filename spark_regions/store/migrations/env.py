"""Alembic's environment: runs on the connection that `spark_regions.store.migrate` hands over."""

from alembic import context

from spark_regions.store.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=False,
    render_as_batch=True,
)
context.run_migrations()
