"""Fits a churn model, saves it, loads it again, and scores today's customers with it."""

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import StringIndexer, VectorAssembler
from pyspark.ml.functions import vector_to_array
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.appName("churn").getOrCreate()
training = spark.read.csv(
    "training.csv", header=True, schema="id INT, city STRING, age INT, spend DOUBLE, churned STRING, note STRING"
)
pipeline = Pipeline(
    stages=[
        StringIndexer(inputCol="city", outputCol="city_index"),
        StringIndexer(inputCol="churned", outputCol="label", stringOrderType="alphabetAsc"),
        VectorAssembler(inputCols=["city_index", "age", "spend"], outputCol="features"),
        LogisticRegression(maxIter=3, regParam=0.1),
    ]
)
pipeline.fit(training.where("churned IS NOT NULL")).write().overwrite().save("model")

customers = spark.read.csv(
    "customers.csv", header=True, schema="id INT, city STRING, age INT, spend DOUBLE, name STRING"
)
scored = PipelineModel.load("model").transform(customers.where("age >= 18"))
scores = scored.select("id", f.round(vector_to_array("probability")[1], 3).alias("risk"), "prediction")
scores.write.mode("overwrite").parquet("scores")
spark.stop()
