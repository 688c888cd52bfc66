import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkExecutorInfo;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.util.LongAccumulator;
import scala.Tuple2;

/** Reads, writes, spills, fails, is retried and is cancelled, and counts by accumulators; prints what they came to. */
public final class Numbers {
    private static final int SLOW_MILLIS = 60_000;
    private static final int POLL_MILLIS = 50;

    public static void main(String[] args) throws InterruptedException {
        JavaSparkContext context = new JavaSparkContext();
        LongAccumulator lines = context.sc().longAccumulator("lines read");
        var amount = context.sc().doubleAccumulator("amount");
        var seen = context.sc().<String>collectionAccumulator("customers");
        var unnamed = context.sc().longAccumulator();
        context.textFile(args[0], 3).map(line -> {
            lines.add(1);
            amount.add(0.5);
            seen.add(line);
            unnamed.add(1);
            return line;
        }).saveAsTextFile(args[1]);

        // A task that fails once: what it had added does not count.
        numbers(context, 4).foreach(number -> {
            lines.add(1);
            if (number == 2 && TaskContext.get().attemptNumber() == 0) {
                throw new IllegalStateException("fails once");
            }
        });

        // A job that fails in the end, which the program survives.
        try {
            numbers(context, 2).foreach(number -> {
                if (number == 1) {
                    throw new IllegalStateException("fails always");
                }
            });
            throw new AssertionError("it did not fail");
        } catch (Exception expected) {
            System.out.println("survived");
        }

        // More rows than a sort keeps in memory (spark.shuffle.spill.numElementsForceSpillThreshold).
        List<Integer> many = IntStream.range(0, 40_000).boxed().collect(Collectors.toList());
        context.parallelize(many, 2).mapToPair(number -> new Tuple2<>(number % 1000, "x".repeat(50)))
            .sortByKey().count();

        // A stage that is run again, with the one before it, because a block of that is gone.
        JavaPairRDD<Integer, Integer> reduced =
            numbers(context, 4).mapToPair(number -> new Tuple2<>(number, 1)).reduceByKey(Integer::sum, 2);
        int shuffle = ((ShuffleDependency<?, ?, ?>) reduced.rdd().dependencies().head()).shuffleId();
        reduced.foreachPartition(rows -> {
            lines.add(1);
            TaskContext task = TaskContext.get();
            if (task.stageAttemptNumber() == 0 && task.partitionId() == 0) {
                var here = SparkEnv.get().blockManager().blockManagerId();
                throw new FetchFailedException(here, shuffle, 0L, 0, 0, new IllegalStateException("a block is gone"));
            }
        });

        // A job that is cancelled, with its tasks.
        context.setJobGroup("slow", "is cancelled", true);
        var slow = numbers(context, 2).foreachAsync(number -> Thread.sleep(SLOW_MILLIS));
        while (running(context) < 2) {
            Thread.sleep(POLL_MILLIS);
        }
        slow.cancel(true);
        while (running(context) > 0) {
            Thread.sleep(POLL_MILLIS);
        }
        context.clearJobGroup();

        // A new accumulator of the same name for each batch.
        for (int batch = 0; batch < 3; batch++) {
            LongAccumulator rows = context.sc().longAccumulator("rows of a batch");
            numbers(context, 2).foreach(number -> rows.add(5));
        }
        System.out.println("lines read: " + lines.value() + ", amount: " + amount.value());
        context.stop();
    }

    private static int running(JavaSparkContext context) {
        return Arrays.stream(context.sc().statusTracker().getExecutorInfos())
            .mapToInt(SparkExecutorInfo::numRunningTasks).sum();
    }

    private static org.apache.spark.api.java.JavaRDD<Integer> numbers(JavaSparkContext context, int count) {
        List<Integer> all = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            all.add(number);
        }
        return context.parallelize(all, count);
    }
}
