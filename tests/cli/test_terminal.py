from __future__ import annotations

import io
import re
from datetime import UTC, datetime

import pytest
from rich.console import Console

from spark_lineage.cli.terminal import how_written, render
from spark_lineage.launch.line import LineCounts
from spark_lineage.merge.lineage import (
    Attempt,
    CatalogChange,
    ColumnChange,
    DatasetLineage,
    SchemaField,
    TaskLineage,
    UnknownDatasets,
    UnreadPart,
    Write,
)
from spark_lineage.naming.identity import DatasetName

A, B = DatasetName("file", "/a"), DatasetName("file", "/b")


def shown(lineage: TaskLineage, counts: LineCounts, width: int, *, terminal: bool = False) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system="truecolor" if terminal else None
    )
    render(lineage, counts, job="dag.task", console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_nothing_is_cut_off(lineage: TaskLineage, counts: LineCounts, width: int) -> None:
    text = shown(lineage, counts, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    # A long name is folded within its column: read down the first column of the inputs.
    table = text[text.index("Inputs") : text.index("Outputs")].splitlines()
    end = table[1].index("table")
    folded = "".join(line[:end].strip() for line in table[2:])
    assert "s3://***@landing-zone-of-the-shop/orders/year=2024/month=01/day=31/part-of-a-long-name.parquet" in folded


@pytest.mark.parametrize("width", [50, 60])
def test_a_narrow_terminal_folds_and_drops_no_column(lineage: TaskLineage, counts: LineCounts, width: int) -> None:
    text = shown(lineage, counts, width)
    assert max(map(len, text.splitlines())) <= width
    outputs = text[text.index("Outputs") : text.index("Made from")]
    for title in ("dataset", "table", "how", "rows", "size", "files"):
        assert re.search(rf"\b{title}\b", outputs), title
    for number in ("1,000", "2.0 kB", "1.2 MB"):
        assert number in text, number


@pytest.mark.parametrize("width", [80, 120])
def test_a_person_sees_the_whole_story(lineage: TaskLineage, counts: LineCounts, width: int) -> None:
    text = shown(lineage, counts, width)
    words = " ".join(text.split())
    assert text.startswith("COMPLETE  dag.task\n")
    assert "local-1700000000000, Spark 4.0.1, spark://***@master:7077, client mode" in words
    assert "took 0:01:23" in words
    for line in (
        r"/data/cust\.csv +- +2 +- +-",
        r"1\.2 MB",
        r"insert \(append\)",
        r"1,000 +2\.0 kB +2\b",
        r"\(part\)",
        r"rename +- +- +-",
        r"failed: /out/broken",
        r"country +<- /data/cust\.csv: country \(IDENTITY\)",
    ):
        assert re.search(line, text), line
    assert "postgres://db:5432/shop.public.report was postgres://db:5432/shop.public.tmp" in words
    assert "db1.sales_by_country" in words
    for sentence in (
        "Made from postgres://db:5432/shop.public.report <- no input",
        "/warehouse/db1.db/sales_by_country <- /data/cust.csv <- ",
        "rename table shop.tmp -> shop.report alter table",
        "db1.sales_by_country: n int -> n bigint; adds mail string; drops old int; sets comment, s3.secret-key",
        "drop database old: it may not have been there",
        "Unknown outputs (what these commands wrote is not known) execute_update_command, 2 times",
    ):
        assert sentence in words
    assert "masked" in words
    assert "all columns <- " in words
    assert words.endswith(
        "1,042 lines read, 3 set aside (2 no JSON, 1 too long), 7 Spark runs merged, evidence: listener and event log"
    )


@pytest.mark.parametrize(
    ("lifecycle", "writes", "told"),
    [
        (None, (), "write"),
        ("CREATE", (Write("INSERT", "append"),), "create, insert (append)"),
        (None, (Write("INSERT", output_mode="complete"),), "insert (complete)"),
        ("OVERWRITE", (Write("OVERWRITE", "overwrite"), Write("INSERT", "errorifexists")), "overwrite, insert"),
        (
            None,
            (Write("DELETE", is_partial=True), Write("INSERT", "ignore", is_partial=True)),
            "delete (part), insert (ignore, part)",
        ),
    ],
)
def test_every_kind_of_write_has_its_line(lifecycle: str | None, writes: tuple[Write, ...], told: str) -> None:
    assert how_written(DatasetLineage(A, lifecycle=lifecycle, writes=writes)) == told


@pytest.mark.parametrize(
    ("fed_by", "told"),
    [
        (((A,), (A, B)), "/o/0 <- /a /o/1 <- /a <- /b"),
        (((A,), ()), "/o/0 <- /a /o/1 <- no input"),
        (((A, B), (A, B)), None),
        (((), ()), None),
    ],
)
def test_what_fed_an_output_is_told_where_it_does_not_go_without_saying(
    fed_by: tuple[tuple[DatasetName, ...], ...], told: str | None
) -> None:
    outputs = tuple(DatasetLineage(DatasetName("file", f"/o/{i}"), fed_by=each) for i, each in enumerate(fed_by))
    lineage = TaskLineage(state="COMPLETE", inputs=(DatasetLineage(A), DatasetLineage(B)), outputs=outputs)
    words = " ".join(shown(lineage, LineCounts(), 80).split())
    assert (f"Made from {told} 0 lines" in words) if told is not None else ("Made from" not in words)


def test_of_many_inputs_the_first_are_named() -> None:
    inputs = tuple(DatasetLineage(DatasetName("file", f"/in/{number:03}")) for number in range(100))
    output = DatasetLineage(A, fed_by=tuple(each.dataset for each in inputs[:99]))
    text = shown(TaskLineage(state="COMPLETE", inputs=inputs, outputs=(output,)), LineCounts(), 80)
    edges = text[text.index("Made from") :]
    assert "/in/009" in edges
    assert "/in/010" not in edges
    assert "<- and 89 others" in edges


def test_a_column_without_a_type_is_told_by_its_name() -> None:
    columns = (ColumnChange(SchemaField("a"), SchemaField("b")), ColumnChange(None, None))
    change = CatalogChange("ALTER", "VIEW", A, "v", datetime(2024, 1, 31, tzinfo=UTC), columns=columns)
    assert "alter view v: a -> b; drops ?" in shown(
        TaskLineage(state="COMPLETE", catalog_changes=(change,)), LineCounts(), 80
    )


def test_no_secret_is_shown(lineage: TaskLineage, counts: LineCounts) -> None:
    assert "hunter2" not in re.sub(r"\s", "", shown(lineage, counts, 80))


def test_colours_are_for_terminals_only(lineage: TaskLineage, counts: LineCounts) -> None:
    assert "\x1b[" not in shown(lineage, counts, 80)
    assert "\x1b[1;32mCOMPLETE" in shown(lineage, counts, 80, terminal=True)


def test_names_are_neither_markup_nor_control_characters() -> None:
    name = DatasetName("file", "/a/[bold red]x[/]\x1b[31m\x07\r\nfake\u202e\ud800")
    lineage = TaskLineage(
        state="FAIL",
        inputs=(DatasetLineage(name), DatasetLineage(A)),
        outputs=(DatasetLineage(A, fed_by=(name,)),),
        attempted=(Attempt(name, "failed"),),
        unconfirmed=(name,),
        catalog_changes=(CatalogChange("DROP", "TABLE", name, name.name, datetime(2024, 1, 31, tzinfo=UTC)),),
        unknown=(UnknownDatasets(name.name, 1),),
        unread=(UnreadPart(name.name, 1),),
    )
    text = shown(lineage, LineCounts(), 120, terminal=False)
    assert text.count(r"/a/[bold red]x[/]\x1b[31m\x07\r\nfake\u202e\ud800") == 7
    assert not set(text) & {"\x1b", "\x07", "\r", "\u202e", "\ud800"}


def test_an_empty_lineage_says_so() -> None:
    text = shown(TaskLineage(state="ABORT"), LineCounts(), 80)
    assert text.splitlines() == [
        "ABORT  dag.task",
        "",
        "Inputs: none",
        "",
        "Outputs: none",
        "",
        "0 lines read, 0 set aside, 0 Spark runs merged, evidence: nothing",
    ]
