"""A browser, if there is one, and one small set of recordings for all tests of the server."""

import shutil
import threading
from contextlib import contextmanager
from functools import cache

import pytest
from conftest import NO_BROWSER
from decodes import write_run

from c4.view import Viewer

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@cache
def make_recordings(folder):
    """Twenty-one trajectories of three families, and results whose steps were not kept."""
    root = folder / "recordings"
    for task in ("mmlu", "gsm8k", "humaneval"):
        write_run(root, task, range(40, 47))
    write_run(root, "gsm8k", range(40, 43), label="c4", cells=False)
    return root


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    return make_recordings(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def viewer(recordings):
    return Viewer(recordings)


@contextmanager
def serving(viewer, **options):
    """A server that answers while the context lasts."""
    from c4.view.server import Server

    server = Server(viewer, **options)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@pytest.fixture(scope="session")
def server(viewer):
    with serving(viewer) as running:
        yield running


@pytest.fixture(scope="session")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(NO_BROWSER)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


class Watched:
    """A page whose errors and requests are kept."""

    def __init__(self, page):
        self.page = page
        self.errors = []
        self.requests = []
        page.on(
            "console", lambda said: self.errors.append(said.text) if said.type == "error" else None
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, address):
        self.page.goto("about:blank")
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")

    def until(self, expression):
        """Wait until something is true. The page's policy lets no library wait inside it."""
        for _ in range(600):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never true: {expression}")


@pytest.fixture
def watched(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = Watched(context.new_page())
    yield found
    context.close()
    assert found.errors == []
