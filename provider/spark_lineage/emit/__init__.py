"""From ``TaskLineage`` to OpenLineage events, to backends and to people."""
