"""Fits a KMeans pipeline, and saves it as segment_model."""

from pyspark.ml import Pipeline
from pyspark.ml.clustering import KMeans
from pyspark.ml.feature import MinMaxScaler, VectorAssembler
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = [(1.0, 10.0), (2.0, 12.0), (90.0, 1.0), (95.0, 2.0)]
stages = [
    VectorAssembler(inputCols=["visits", "spend"], outputCol="raw"),
    MinMaxScaler(inputCol="raw", outputCol="features"),
    KMeans(k=2, seed=1, maxIter=3, predictionCol="segment"),
]
Pipeline(stages=stages).fit(spark.createDataFrame(rows, ["visits", "spend"])).save("segment_model")
spark.stop()
