"""A headless Chromium that talks to the loopback alone, and what axe-core says of a page."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import pytest

Found = TypeVar("Found")
# Without them it looks for hosts of Google.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WAIT_SECONDS = 60


class Browser:
    """One window; ``driver`` is Selenium's."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Go there."""
        self.driver.get(url)

    def color(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark``, as the system of a user does."""
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script)

    def before_page(self, script: str) -> None:
        """Run a script in each page before its own."""
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})

    def all(self, selector: str) -> list[Any]:
        """The elements that fit a selector."""
        return list(self.driver.find_elements("css selector", selector))

    def texts(self, selector: str) -> list[str]:
        """Their texts."""
        return [
            str(text) for text in self.run(f"return [...document.querySelectorAll({selector!r})].map(e => e.innerText)")
        ]

    def click(self, selector: str, text: str) -> None:
        """Click the first that holds a text."""
        self.wait(f"{text} in {selector}", lambda: [one for one in self.texts(selector) if text in one])
        script = (
            f"[...document.querySelectorAll({selector!r})].find(e => e.innerText.includes({json.dumps(text)})).click()"
        )
        self.run(script)

    def wait(self, what: str, is_so: Callable[[], Found], seconds: float = WAIT_SECONDS) -> Found:
        """Poll until it gives something true, and return that."""
        deadline = time.monotonic() + seconds
        while not (found := is_so()):
            assert time.monotonic() < deadline, f"Waited {seconds} s for {what}: {self.texts('body')}"
            time.sleep(0.1)
        return found

    def faults(self, selector: str) -> list[str]:
        """What axe-core finds serious or critical there."""
        self.run(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        script = "const done = arguments[arguments.length - 1]; axe.run(arguments[0]).then(done, String)"
        found = self.driver.execute_async_script(script, selector)
        assert found["passes"], "axe-core has looked at nothing"
        return [
            f"{one['impact']} {one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes']]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    def hosts(self) -> set[str]:
        """The origins of all that pages have loaded or asked for so far."""
        messages = (json.loads(line["message"])["message"] for line in self.driver.get_log("performance"))
        urls = (one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent")
        return {"/".join(url.split("/")[:3]) for url in urls if url.startswith(("http", "ws"))}

    def screenshot(self, path: Path, selector: str = "body") -> None:
        """Keep what the window shows of an element, as PNG."""
        self.all(selector)[0].screenshot(str(path))


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start it with Debian's driver; skip where it is not installed."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("Chromium is not installed (on Debian: apt-get install chromium chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1300,1000", "--lang=en-GB"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        window.set_script_timeout(120)
        yield Browser(window)
    finally:
        window.quit()
