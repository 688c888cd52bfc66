import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;

/** Copies orders from CSV to Parquet, and ends only after a file has appeared. */
public final class SlowCopy {
    private static final int PATIENCE_SECONDS = 600;

    public static void main(String[] args) throws InterruptedException {
        SparkSession spark = SparkSession.builder().getOrCreate();
        spark.read().schema("order_id int, amount int").option("header", true).csv(args[0]).write().parquet(args[1]);
        long deadline = System.nanoTime() + PATIENCE_SECONDS * 1_000_000_000L;
        while (!Files.exists(Path.of(args[2]))) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("nobody let the program end");
            }
            Thread.sleep(100);
        }
        spark.stop();
    }
}
