import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.sum;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Sums up the orders of each product: {@code spark-submit --class OrdersByProduct JAR ORDERS_CSV TARGET}. */
public final class OrdersByProduct {
    private OrdersByProduct() {}

    public static void main(String[] arguments) {
        SparkSession spark = SparkSession.builder().appName("orders_by_product").getOrCreate();
        Dataset<Row> orders = spark.read().option("header", "true").option("inferSchema", "true").csv(arguments[0]);
        orders.where(col("status").equalTo("shipped"))
                .groupBy("product")
                .agg(sum("quantity").alias("quantity"))
                .write()
                .mode("overwrite")
                .parquet(arguments[1]);
        spark.stop();
    }
}
