"""Reads what plans and streaming queries say of Kafka: the topics that a scan reads, and a sink. No text has brokers.

A batch prints its topics (``KafkaRelation``), a stream only that it reads Kafka (``KafkaSourceProvider$KafkaScan``);
the progress of its query has the topics of each source, with their offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from spark_lineage.merge.execution import kafka_topic, stream_number, stream_source, unnamed
from spark_lineage.merge.lineage import Subscription
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.plan import Node

if TYPE_CHECKING:
    from spark_lineage.plans.event_log_lines import Source

UNNAMED_SINK = unnamed("topic of a sink")
"""What stands for the topic that a stream writes to, an option of its sink, or those that the rows name."""
UNREAD_TOPICS = "Kafka: the topics of a pattern"
"""What is counted of a batch that subscribes to a pattern."""
_PATTERN = "SubscribePattern"
_SUBSCRIBED = r"(?P<strategy>Subscribe|SubscribePattern|Assign)\[(?P<topics>.*)\]"
_RELATION = re.compile(rf"(?:Scan )?KafkaRelation\(strategy={_SUBSCRIBED}, start=(?P<start>.*), end=.*\)\s*", re.DOTALL)
_OFFSET = re.compile(r"(?P<topic>[\w.-]+)-(?P<partition>\d+) -> (?P<offset>-?\d+)")
_SPECIFIC = "SpecificOffsetRangeLimit("
_LIMITS = {"EarliestOffsetRangeLimit": "earliest", "LatestOffsetRangeLimit": "latest"}
_SOURCE = re.compile(rf"Kafka\w*\[{_SUBSCRIBED}\]", re.DOTALL)
_STREAM_SCAN = "KafkaSourceProvider$KafkaScan"
_SINK = "KafkaSourceProvider$KafkaTable"
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def is_written(arguments: str) -> bool:
    """Whether the arguments of a ``SaveIntoDataSourceCommand`` are those of a write to Kafka."""
    return arguments.startswith(_PROVIDER)


def is_sink(description: str) -> bool:
    """Whether a streaming query writes to Kafka, by what its progress says of its sink."""
    return _SINK in description


def relation_of(node: Node) -> re.Match[str] | None:
    """Return what a scan, or a relation of a logical plan, says of the topics that it reads."""
    text = node.name if node.name != "LogicalRelation" else node.fields.get("Arguments", "").partition("), [")[0] + ")"
    return _RELATION.fullmatch(text)


def scanned_topics(node: Node) -> list[Observed] | None:
    """Return the topics that a leaf reads, none for a pattern; None where it reads no Kafka.

    Those of a source of a stream have one name together, until the progress of the query has them.
    """
    if _STREAM_SCAN in node.description:
        return [Observed(stream_source(node.number))]
    relation = relation_of(node)
    if relation is None:
        return None
    return [
        Observed(kafka_topic(topic), subscription=Subscription("", _start(relation["start"], topic)))
        for topic in _topics(relation) or ()
    ]


def _start(limit: str, topic: str) -> str:
    """Return where a batch begins to read a topic; the partition of a time is not known."""
    if not limit.startswith(_SPECIFIC):
        return _LIMITS.get(limit, "")
    found = {each["partition"]: int(each["offset"]) for each in _OFFSET.finditer(limit) if each["topic"] == topic}
    return _text(found)


def _text(offsets: Any) -> str:
    """Return the offsets of a topic by partition as JSON; those of the first batch of a new stream are not known."""
    return msgspec.json.encode(offsets, order="sorted").decode() if offsets else ""


def subscriptions(sources: Iterable[Source]) -> Mapping[DatasetName, Subscription]:
    """Return how a stream has subscribed to each topic, and where a micro-batch began to read it."""
    return {
        kafka_topic(topic): Subscription(
            match["topics"] if match["strategy"] == _PATTERN else "", _text(_offsets(source.startOffset).get(topic))
        )
        for source in sources
        if (match := _SOURCE.fullmatch(source.description))
        for topic in _topics_of(source)
    }


def _topics(subscribed: re.Match[str]) -> list[str] | None:
    """Return the topics of ``Subscribe[a, b]`` and ``Assign[a-0, a-1]``, None for those of a pattern."""
    parts = subscribed["topics"].split(", ")
    match subscribed["strategy"]:
        case "Subscribe":
            return parts
        case "Assign":
            return sorted({part.rpartition("-")[0] for part in parts})
    return None


def stream_topics(
    placeholders: Iterable[DatasetName], sources: Sequence[Source]
) -> Mapping[DatasetName, list[DatasetName]]:
    """Return the topics of each source of a stream by what stands for it in plans.

    Plans and progress name sources in one order; a plan lacks those without new rows. Where neither all sources nor
    those with new rows are as many as the plan has, nothing is returned.
    """
    numbered = sorted((number, name) for name in set(placeholders) if (number := stream_number(name)) is not None)
    described = [source for source in sources if _SOURCE.fullmatch(source.description)]
    for fitting in (described, [source for source in described if source.startOffset != source.endOffset]):
        if numbered and len(fitting) == len(numbered):
            named = zip((name for _, name in numbered), map(_topics_of, fitting), strict=True)
            return {name: list(map(kafka_topic, topics)) for name, topics in named if topics}
    return {}


def _topics_of(source: Source) -> list[str]:
    match = _SOURCE.fullmatch(source.description)
    return (_topics(match) if match else None) or sorted(_offsets(source.endOffset))


def _offsets(text: Any) -> Mapping[str, Any]:
    """Return the offsets by topic, which Spark prints as JSON inside of a text."""
    try:
        found = msgspec.json.decode(text) if isinstance(text, str) else text
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
