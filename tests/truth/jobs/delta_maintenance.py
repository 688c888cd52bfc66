"""OPTIMIZE and VACUUM change no content; RESTORE takes a table back to its first version."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql(f"OPTIMIZE delta.`{sys.argv[1]}/compact`")
spark.sql(f"VACUUM delta.`{sys.argv[1]}/compact` RETAIN 1000 HOURS")
spark.sql(f"RESTORE TABLE delta.`{sys.argv[1]}/history` TO VERSION AS OF 0")
spark.sql(f"DESCRIBE HISTORY delta.`{sys.argv[1]}/history`").collect()
spark.stop()
