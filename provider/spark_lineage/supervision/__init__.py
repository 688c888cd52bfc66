"""An add-on that keeps Spark's servers and jobs in order: queues, health, leftovers. Nothing of it is lineage."""
