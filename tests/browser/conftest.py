"""Pages in headless Chromium, WebGL2 by software: nothing may be fetched, no error may appear."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spherule.report.globe import Globe, write_globe

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    *("--no-sandbox", "--no-first-run", "--disable-quic", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pictures", type=Path, help="keep the pictures of the docs in this directory"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="make test-browser installs it")
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a globe, or a page that is there; at the end of the test, look what the page asked for
    and complained of.
    """
    contexts, asked, complaints = [], [], []

    def opened(
        what: Globe | Path, *, script: str = "", ready: str = "[data-ready]", **options: Any
    ) -> Any:
        path = what if isinstance(what, Path) else tmp_path / "globe.html"
        if isinstance(what, Globe):
            write_globe(path, what)
        contexts.append(
            browser.new_context(**{"viewport": {"width": 1140, "height": 1000}, **options})
        )
        page = contexts[-1].new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if script:
            page.add_init_script(script)
        page.goto(path.as_uri())
        page.wait_for_selector(f"spherule-globe{ready}")
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    fetched = [url for url in asked if not url.startswith(("file://", "data:image/", "blob:"))]
    assert (fetched, complaints) == ([], [])
    assert sum(url.startswith("file://") for url in asked) == len(contexts)


def settle(page: Any) -> None:
    """Until what was asked for is drawn, with all pixels."""
    page.wait_for_function(
        "[...document.querySelectorAll('spherule-globe')].every(globe => !globe.moving)"
    )
    page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


def middle(page: Any, pane: int = 0) -> tuple[float, float, float]:
    """The middle of a picture on the page, and its side."""
    box = page.locator(".globe-stage canvas").nth(pane).bounding_box()
    side = min(box["width"], box["height"])
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, side


def readout(page: Any, pane: int = 0) -> dict[str, float]:
    """Value, latitude and longitude under the pointer, as far as they are there."""
    settle(page)
    data = page.locator(".globe-readout").nth(pane).evaluate("e => ({...e.dataset})")
    return {name: float(value) for name, value in data.items()}


def color_at(page: Any, x: float, y: float) -> list[int]:
    """Red, green and blue of a pixel of the page."""
    import io

    from PIL import Image

    clip = {"x": round(x), "y": round(y), "width": 1, "height": 1}
    picture = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")
    return list(picture.getpixel((0, 0)))
