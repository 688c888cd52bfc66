"""Makes OpenLineage events of a ``TaskLineage``, for backends and for people."""
