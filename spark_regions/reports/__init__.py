"""What an application's event log says of us: read, added up, and shown as text or HTML. Needs no Spark."""
