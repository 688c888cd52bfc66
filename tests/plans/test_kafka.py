"""Plans and progress of real queries on Kafka 4.3 (Spark 4.2) name topics, and the columns that come from them."""

from __future__ import annotations

import pytest

from spark_lineage.merge.execution import kafka_topic, stream_source
from spark_lineage.merge.lineage import Subscription
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.content import read_plan
from spark_lineage.plans.event_log_lines import Source
from spark_lineage.plans.expressions import GROUPED
from spark_lineage.plans.kafka import UNREAD_TOPICS, is_sink, is_written, scanned_topics, stream_topics, subscriptions
from spark_lineage.plans.plan import Node
from spark_lineage.plans.scope import NOTHING, UNTRACED
from spark_lineage.plans.tables import Tables, read_leaf

RANGES = "start=EarliestOffsetRangeLimit, end=LatestOffsetRangeLimit"
OUTPUT = {"Output": "[key#5, value#6, topic#7, partition#8, offset#9L, timestamp#10, timestampType#11]"}
STREAM = "class org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaScan\n"


@pytest.mark.parametrize(
    ("strategy", "topics"),
    [
        ("Subscribe[orders]", ["orders"]),
        ("Subscribe[orders, refunds]", ["orders", "refunds"]),
        ("Assign[by-day-0, by-day-1, refunds-0]", ["by-day", "refunds"]),
        ("SubscribePattern[re.*, x]", []),
    ],
)
def test_a_batch_reads_the_topics_that_its_scan_names(strategy, topics) -> None:
    expected = [Observed(kafka_topic(topic), subscription=Subscription("", "earliest")) for topic in topics]
    scan = Node(1, f"Scan KafkaRelation(strategy={strategy}, {RANGES})", OUTPUT)
    assert scanned_topics(scan) == expected
    read = read_leaf(scan, Tables())
    columns = [{name for _, name, _ in sources} for sources in read.columns]
    assert columns == (
        [{"key"}, {"value"}, {"topic"}, {"partition"}, {"offset"}, {"timestamp"}, {"timestampType"}] if topics else []
    )
    assert read.unread == (() if topics else (UNREAD_TOPICS,))
    relation = f"KafkaRelation(strategy={strategy}, {RANGES}), [key#103, value#104], false"
    assert scanned_topics(Node(1, "LogicalRelation", {"Arguments": relation})) == expected


DISTINCT = """== Physical Plan ==
Execute SaveIntoDataSourceCommand (1)
   +- SaveIntoDataSourceCommand (2)
         +- Distinct (4)
            +- LogicalRelation (3)


(1) Execute SaveIntoDataSourceCommand
Output: []

(2) SaveIntoDataSourceCommand
Arguments: org.apache.spark.sql.kafka010.KafkaSourceProvider@1f, [kafka.bootstrap.servers=b:9092, topic=t], Append

(3) LogicalRelation
Arguments: parquet, [key#1, value#2], `spark_catalog`.`d`.`orders`, false

(4) Distinct

"""


def test_distinct_rows_that_go_to_a_topic_are_grouped_by_their_columns() -> None:
    tables = Tables()
    tables.configure({"spark.sql.warehouse.dir": "/warehouse"}, "")
    (output,) = read_plan(DISTINCT, tables, UNTRACED, {}).outputs
    grouped = {field for column, _, field, how in output.edges if column is None and how == GROUPED}
    assert (output.dataset, grouped) == (DatasetName("kafka://b:9092", "t"), {"key", "value"})


@pytest.mark.parametrize(
    "node", [Node(1, "Scan parquet ", OUTPUT), Node(1, "LogicalRelation", {"Arguments": "parquet, [a#1], false"})]
)
def test_other_leaves_read_no_topic(node) -> None:
    assert scanned_topics(node) is None


def test_a_scan_of_a_stream_has_its_topics_from_the_progress() -> None:
    scan = Node(3, "MicroBatchScan", OUTPUT, description=STREAM)
    assert scanned_topics(scan) == [Observed(stream_source(3))]
    assert read_leaf(scan, Tables()).columns[1] != NOTHING


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("EarliestOffsetRangeLimit", "earliest"),
        ("LatestOffsetRangeLimit", "latest"),
        ("SpecificOffsetRangeLimit(Map(by-day-0 -> 5, by-day-1 -> -2, refunds-0 -> 7))", '{"0":5,"1":-2}'),
        ("GlobalTimestampRangeLimit(1700000000000,ERROR)", ""),
    ],
)
def test_a_batch_begins_at_the_offsets_that_its_scan_names(start, expected) -> None:
    strategy = "Subscribe[by-day]"
    scan = Node(1, f"Scan KafkaRelation(strategy={strategy}, start={start}, end=LatestOffsetRangeLimit)", OUTPUT)
    (topic,) = scanned_topics(scan)
    assert topic.subscription == Subscription("", expected)


@pytest.mark.parametrize(
    ("start", "expected"), [(None, ""), ('{"orders":{"1":4,"0":2}}', '{"0":2,"1":4}'), ("no JSON", "")]
)
def test_a_stream_names_its_pattern_and_where_a_batch_began(start, expected) -> None:
    source = Source("KafkaV2[SubscribePattern[ord.*]]", start, '{"orders":{"0":9}}')
    other = Source("FileStreamSource[file:/in]", None, None)
    assert subscriptions([other, source]) == {kafka_topic("orders"): Subscription("ord.*", expected)}


OFFSETS = '{"orders":{"0":2},"refunds":{"0":1}}'


@pytest.mark.parametrize(
    ("numbers", "sources", "expected"),
    [
        ([3], [Source("KafkaV2[Subscribe[orders]]")], {3: ["orders"]}),
        ([3], [Source("KafkaV2[SubscribePattern[.*s]]", endOffset=OFFSETS)], {3: ["orders", "refunds"]}),
        # Spark's REST API has the offsets as they are.
        ([3], [Source("KafkaV2[SubscribePattern[.*s]]", endOffset={"orders": {"0": 2}})], {3: ["orders"]}),
        ([3], [Source("KafkaV2[SubscribePattern[.*s]]", endOffset="?")], {}),
        ([7, 3], [Source("KafkaV2[Subscribe[a]]"), Source("KafkaV2[Subscribe[b]]")], {3: ["a"], 7: ["b"]}),
        # The plan has no scan of a source without new rows.
        (
            [3],
            [Source("KafkaV2[Subscribe[a]]", "{}", "{}"), Source("KafkaV2[Subscribe[b]]", "{}", OFFSETS)],
            {3: ["b"]},
        ),
        ([3], [Source("KafkaV2[Subscribe[a]]"), Source("KafkaV2[Subscribe[b]]")], {}),
        ([3], [Source("FileStreamSource[file:/in]")], {}),
        ([], [Source("KafkaV2[Subscribe[a]]")], {}),
    ],
)
def test_sources_of_a_stream_have_the_topics_of_its_progress(numbers, sources, expected) -> None:
    found = stream_topics(map(stream_source, numbers), sources)
    assert found == {stream_source(number): list(map(kafka_topic, topics)) for number, topics in expected.items()}


def test_a_command_and_a_sink_of_kafka_are_known_by_their_classes() -> None:
    assert is_written("org.apache.spark.sql.kafka010.KafkaSourceProvider@66a019c9, [topic=loud], ErrorIfExists")
    assert not is_written("org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider@1, [], Append")
    assert is_sink("org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@2c34b823")
    assert not is_sink("FileSink[file:/out]")
