"""Python table functions in SQL: one makes words of each row's text, one is given a whole table."""

from collections.abc import Iterator

from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import udtf

spark = SparkSession.builder.getOrCreate()


@udtf(returnType="word STRING, size INT")
class SplitWords:
    """Each word of a text, and how long it is."""

    def eval(self, text: str) -> Iterator[tuple[str, int]]:
        """Split one text."""
        for word in text.split():
            yield word.lower(), len(word)


@udtf(returnType="account STRING, balance INT")
class Balances:
    """The sum of each account at the end of a table."""

    def __init__(self) -> None:
        """Begin with no accounts."""
        self.sums: dict[str, int] = {}

    def eval(self, row: Row) -> None:
        """Add one payment."""
        self.sums[row["account"]] = self.sums.get(row["account"], 0) + row["amount"]

    def terminate(self) -> Iterator[tuple[str, int]]:
        """Return all sums."""
        yield from self.sums.items()


spark.udtf.register("split_words", SplitWords)
spark.udtf.register("balances", Balances)
spark.read.json("notes.json", schema="id INT, text STRING, lang STRING").createOrReplaceTempView("notes")
spark.read.csv("payments.csv", header=True, schema="account STRING, amount INT, day INT").createOrReplaceTempView(
    "payments"
)
spark.sql("""
    SELECT n.id, w.word, w.size FROM notes n, LATERAL split_words(n.text) w WHERE n.lang = 'en' AND n.text <> ''
""").write.parquet("words")
spark.sql("""
    SELECT account, balance
    FROM balances(TABLE(SELECT account, amount FROM payments WHERE account IS NOT NULL AND amount <> 0))
""").write.parquet("balances")
spark.stop()
