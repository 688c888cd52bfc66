import org.apache.spark.sql.SparkSession;

/** Counts the orders of each customer, as counts.py does: a standalone cluster runs no Python in cluster mode. */
public final class Counts {
    public static void main(String[] args) {
        SparkSession spark = SparkSession.builder().getOrCreate();
        spark.read().option("header", true).csv(args[0]).groupBy("customer").count().write().parquet(args[1]);
        spark.stop();
    }
}
