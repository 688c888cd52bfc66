"""A database sums and counts; rows are skipped before the first are taken; columns get other names."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.getOrCreate()
r = spark.read.format("jdbc").options(
    url="jdbc:h2:file:./shop",
    user="sa",
    password="pw-of-shop",
    dbtable="SALES.ORDERS",
    driver="org.h2.Driver",
    pushDownAggregate="true",
    pushDownLimit="true",
    pushDownOffset="true",
)
o = r.load()
o.where("ID > 1").groupBy("DEPOT").agg(f.sum("`A B`")).write.parquet("o1")
o.groupBy().count().write.parquet("o2")
o.selectExpr("ID AS id", "`A B` * 2").orderBy("id").offset(1).limit(1).write.parquet("o3")
o.toDF("x", "d", "c").select("d", "c").write.parquet("o4")
spark.stop()
