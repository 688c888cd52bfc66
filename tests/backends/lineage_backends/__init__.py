"""Real backends for tests and for ``make backends``: an OpenLineage server, Kafka, PostgreSQL, Data.Rentgen, Atlas."""
