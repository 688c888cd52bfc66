"""An add-on that receives the events of Spark drivers over HTTP, as a service: ``spark-lineage receive``."""
