"""Tables of one name in two databases are joined, into a table of the second; a query sums one of them."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()


def t(db, **o):
    """Read from a database."""
    o |= {"user": "sa", "password": "p", "driver": "org.h2.Driver"}
    return spark.read.format("jdbc").options(url=f"jdbc:h2:file:./{db}", **o).load()


a, b = t("one", dbtable="T"), t("two", dbtable="T")
j = a.join(b, a.ID == b.ID).select(a.V.alias("A"), b.V.alias("B"))
j.write.jdbc("jdbc:h2:file:./two", "OUT", properties={"user": "sa", "password": "p", "driver": "org.h2.Driver"})
t("one", query="SELECT V + 1 AS VV FROM T").agg(f.max("VV")).write.parquet("o2")
spark.stop()
