"""The page of ``spark-lineage show --html``: what it holds, and in Chromium what it draws, of hostile names as well."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, chromium
from tab_events import RECORDED, recorded_event, wide_event

from spark_lineage.cli import main
from spark_lineage.view import compact
from spark_lineage.view.page import page

NAMES = (
    "<b>bold</b>",
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    'it\'s "quoted" & more',
    "مجموعة البيانات/الطلبات اليومية",
    "x" * 300,
    "a\nb\tc\u2028d",
    "$view {title} \\u003c",
)
A_414, GTASK_414 = (next(path for path in RECORDED if path.stem == name) for name in ("a_414", "gtask_414"))


class Scripts(HTMLParser):
    """The texts of the scripts of a page, by a parser that follows HTML's rules."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attributes if name in ("src", "href", "onerror")]
        if tag == "script":
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script":
            self.texts[-1] += data


def odd_event() -> dict[str, Any]:
    """60 datasets, the first of which have hostile names, as the job has."""
    event = wide_event(60, 600)
    for at, name in enumerate(NAMES):
        event["inputs"][at]["name"], event["outputs"][at]["name"] = name, f"out {name}"
    event["job"]["name"] = f"shop.{NAMES[1]}"
    return event


def empty_event() -> dict[str, Any]:
    return wide_event(2, 2) | {"inputs": [], "outputs": []}


EVENTS: dict[str, dict[str, Any]] = {
    "odd": odd_event(),
    "empty": empty_event(),
    "complete": recorded_event(A_414),
    "fail": recorded_event(GTASK_414, "FAIL"),
    "abort": recorded_event(A_414, "ABORT"),
}


@pytest.mark.parametrize("name", EVENTS)
def test_page_has_the_view_as_data_and_no_script_but_ours(name: str) -> None:
    view = compact(EVENTS[name], 10**9)
    data, *code = Scripts(page(view)).texts
    assert json.loads(data) == view
    assert len(code) == 2
    assert "broken" not in "".join(code)


def test_show_html_of_lineage_files_and_of_their_merged_event_are_one_picture(tmp_path: Path) -> None:
    source = str(A_414)
    assert main(["show", source, "--exit-code", "0", "--html", str(tmp_path / "one.html")]) == 0
    assert main(["merge", source, "--exit-code", "0", "-o", str(tmp_path / "event.json")]) == 0
    assert main(["show", str(tmp_path / "event.json"), "--html", str(tmp_path / "two.html")]) == 0
    one, two = (json.loads(Scripts((tmp_path / name).read_text()).texts[0]) for name in ("one.html", "two.html"))
    assert (one.pop("lines"), one.pop("set_aside")) == (21, 0)
    assert one == two
    assert (one["state"], len(one["inputs"]), len(one["outputs"])) == ("COMPLETE", 2, 1)


def test_show_html_of_events_of_several_tasks_wants_a_job_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = wide_event(2, 4), wide_event(4, 4)
    second["job"] = {"namespace": "airflow", "name": "wide.second"}
    file, out = tmp_path / "events.ndjson", tmp_path / "page.html"
    file.write_text("\n".join(map(json.dumps, (first, second))))
    assert main(["show", str(file), "--html", str(out)]) == 2
    assert "choose one by --job-name: wide.first, wide.second" in capsys.readouterr().err
    assert main(["show", str(file), "--html", str(out), "--job-name", "wide.second"]) == 0
    assert len(json.loads(Scripts(out.read_text()).texts[0])["inputs"]) == 2


def test_show_html_of_a_launch_directory_draws_the_event_that_the_task_has_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run-events.jsonl").write_text(json.dumps(wide_event(2, 4)) + "\n")
    assert main(["show", str(tmp_path), "--html", str(tmp_path / "page.html")]) == 0
    assert len(json.loads(Scripts((tmp_path / "page.html").read_text()).texts[0])["inputs"]) == 1
    assert main(["show", str(tmp_path)]) == 2
    assert "show --html draws what was sent" in capsys.readouterr().err


def test_show_html_masks_secrets_of_a_merged_event(tmp_path: Path) -> None:
    event = wide_event(2, 4)
    event["run"]["facets"]["errorMessage"] = {
        "message": "cannot reach jdbc:x://h?password=hunter2",
        "programmingLanguage": "JAVA",
    }
    (tmp_path / "event.json").write_text(json.dumps(event))
    assert main(["show", str(tmp_path / "event.json"), "--html", str(tmp_path / "page.html")]) == 0
    content = (tmp_path / "page.html").read_text()
    assert "cannot reach" in content
    assert "hunter2" not in content


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


def opened(browser: Browser, name: str, folder: Path, width: int = 1400) -> dict[str, Any]:
    """Open the page of an event, and return the view that it draws."""
    view = compact(EVENTS[name], 10**9)
    file = folder / f"{name}.html"
    file.write_text(page(view), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.open(file.as_uri())
    browser.wait("the picture", lambda: browser.all(".node"))
    return view


def downloaded(browser: Browser, folder: Path, button: str) -> str:
    behavior = {"behavior": "allow", "downloadPath": str(folder)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    browser.click(".tools button", button)
    (file,) = browser.wait("the file", lambda: list(folder.glob(f"*.{button.lower()}")))
    return str(browser.wait("its content", file.read_text))


@pytest.mark.truth
@pytest.mark.parametrize("width", [1400, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", EVENTS)
def test_page_is_drawn_accessible_and_without_requests(
    browser: Browser, tmp_path: Path, name: str, scheme: str, width: int
) -> None:
    browser.color(scheme)
    view = opened(browser, name, tmp_path, width)
    datasets = [one for kind in ("inputs", "outputs", "attempted") for one in view.get(kind, ())]
    assert len(browser.all(".node")) == len(datasets) + 1
    assert browser.texts("[role=status]")[0].startswith(view["state"])
    hints = browser.run("return [...document.querySelectorAll('.node .head')].map(e => e.title)")
    assert {one["name"] for one in datasets} <= {hint.partition(" ")[2] for hint in hints}
    assert browser.driver.title == " ".join(view["job"].split())
    assert browser.faults("body") == []
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.hosts() == set()
    assert [line for line in browser.driver.get_log("browser") if line["level"] == "SEVERE"] == []


@pytest.mark.truth
@pytest.mark.parametrize(("name", "sign"), [("complete", "✓"), ("fail", "✕"), ("abort", "■")])
def test_state_has_a_colour_and_a_sign(browser: Browser, tmp_path: Path, name: str, sign: str) -> None:
    opened(browser, name, tmp_path)
    script = "const e = document.querySelector('.state'); return getComputedStyle(e{}).{}"
    assert sign in browser.run(script.format(", '::before'", "content"))
    plain = browser.run("return getComputedStyle(document.querySelector('p')).color")
    assert browser.run(script.format("", "color")) != plain


@pytest.mark.truth
def test_keyboard_picks_searches_and_zooms(browser: Browser, tmp_path: Path) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    opened(browser, "odd", tmp_path)
    head = browser.all(".node.output .head")[len(NAMES)]
    head.send_keys(keys.ENTER)
    browser.wait("its columns", lambda: browser.texts(".node.output .column"))
    (column, *_) = browser.all(".node.output .column")
    column.send_keys(keys.ENTER)
    browser.wait("its source", lambda: browser.texts(".node.input .column.lit"))
    assert browser.run("return document.activeElement.className").startswith("column"), "the focus stays"
    (field,) = browser.all("input[type=search]")
    field.send_keys("it's")
    browser.wait("what is found", lambda: "2 of 60 datasets" in " ".join(browser.texts(".tools")))
    assert browser.run("return document.activeElement.type") == "search"
    field.send_keys(keys.BACKSPACE * 4)
    (frame,) = browser.all(".scroll")
    frame.send_keys("-")
    browser.wait("a smaller graph", lambda: "80 %" in " ".join(browser.texts(".tools")))
    frame.send_keys("0")
    browser.wait("the whole graph", lambda: "80 %" not in " ".join(browser.texts(".tools")))
    assert browser.run("const e = document.querySelector('.scroll'); return e.scrollHeight <= innerHeight")


@pytest.mark.truth
def test_downloads_are_the_view_and_the_picture(browser: Browser, tmp_path: Path) -> None:
    view = opened(browser, "odd", tmp_path)
    assert json.loads(downloaded(browser, tmp_path, "JSON")) == view
    picture = ET.fromstring(downloaded(browser, tmp_path, "SVG"))  # noqa: S314 (of our own browser)
    texts = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"shop.db/raw_orders_0029", 'it\'s "quoted" & more', "1,000 rows · 123.5 MB"} <= texts
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) == 60
