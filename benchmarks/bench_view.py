"""How fast the server is, as ratios measured in one run on one machine.

    python benchmarks/bench_view.py

- opening a trajectory of 256 × 256 against reading its cells, grading apart: the server's answer,
  and all of it until the page has drawn it
- a scrub step in the page: median and 95th percentile of its own measurements, layout included
- opening the page with 10,000 trajectories in its list against 100
- bytes of a page in one file with one trajectory of 72 × 72
"""

import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from c4.tasks import Shape
from c4.view import Viewer, write_page
from c4.view.server import Server
from c4.view.trajectory import trajectory_message

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "view")]

from decodes import write_run  # noqa: E402 - the tests' own decodes

ROUNDS = 15
FRAME = 1000 / 60
LARGE = Shape(length=256, budget=256, block_length=32)
SMALL = Shape(length=8, budget=8, block_length=4)
ONE_FILE = Shape(length=72, budget=72, block_length=9)
RUN = "model=made/task=gsm8k/method=baseline"


@contextmanager
def serving(root: Path) -> Iterator[str]:
    server = Server(Viewer(root))
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server.address
    server.stop()
    thread.join()


def median_seconds(*acts: Callable[[], object]) -> list[float]:
    """Medians of several rounds in which the acts take turns, after one that fills caches."""
    taken: list[list[float]] = [[] for _ in acts]
    for act in acts:
        act()
    for _ in range(ROUNDS):
        for act, times in zip(acts, taken, strict=True):
            start = time.perf_counter()
            act()
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in taken]


def open_page(page: Page, address: str) -> float:
    """Seconds until the page says that it is ready, with rows in its list."""
    page.goto("about:blank")
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector(".row .who")
    return time.perf_counter() - start


def measure_opening(root: Path, page: Page) -> None:
    # Another trajectory each time: the server keeps what it has answered last.
    numbers = range(1, 4 * ROUNDS + 1)
    write_run(root, "gsm8k", numbers, shape=LARGE, text="The answer is 7. " * 12)
    viewer = Viewer(root)
    cache = viewer.cache(RUN)
    read, asked = iter(numbers), iter(numbers)
    reading, answering = median_seconds(
        lambda: cache.run.trajectory(next(read)),
        lambda: trajectory_message(cache, next(asked), viewer.menu, {}),
    )
    print(f"reading the cells of 256 × 256: {1000 * reading:.1f} ms")
    print(f"the server's answer: {1000 * answering:.1f} ms, {answering / reading:.2f} times that")
    with serving(root) as address:
        where = f"{address}#{urlencode({'run': RUN, 't': 1})}"
        open_page(page, where)
        taken = [reopen(page, number) for number in numbers]
        shown = statistics.median(taken)
        print(f"asked, answered, drawn: {shown:.1f} ms, {shown / reading / 1000:.2f} times that")
        measure_scrubbing(page)


def reopen(page: Page, t: int) -> float:
    """Milliseconds from asking for another trajectory until it is drawn, as the page has them."""
    found: float = page.evaluate(
        """async ([run, t]) => {
          const start = performance.now();
          await c4.app.trajectory.open(run, t);
          return performance.now() - start;
        }""",
        [RUN, t],
    )
    return found


def measure_scrubbing(page: Page) -> None:
    page.evaluate(
        """async () => {
          c4.frames.length = 0;
          for (let step = 1; step <= c4.decode.steps; step += 1) {
            c4.app.trajectory.player.go(step);
            await new Promise(requestAnimationFrame);
          }
        }"""
    )
    frames = page.evaluate("c4.frames")
    late = statistics.quantiles(frames, n=20)[-1]
    print(f"a scrub step of {len(frames)}: median {statistics.median(frames):.2f} ms, ", end="")
    print(f"95th percentile {late:.2f} ms; a frame is {FRAME:.1f} ms")


def measure_list(root: Path, page: Page) -> None:
    times = {}
    for count in (100, 10_000):
        folder = root / str(count)
        write_run(folder, "gsm8k", range(count), shape=SMALL, text="7")
        with serving(folder) as address:
            (times[count],) = median_seconds(lambda address=address: open_page(page, address))
    few, many = times[100], times[10_000]
    print(f"the page with 100 trajectories: {few:.2f} s; with 10,000: {many:.2f} s, ", end="")
    print(f"{many / few:.2f} times that")


def measure_file(root: Path) -> None:
    write_run(root, "gsm8k", [1], shape=ONE_FILE)
    target = root / "page.html"
    write_page(target, Viewer(root), [(RUN, 1)])
    print(f"one trajectory of 72 × 72 in one file: {target.stat().st_size:,} bytes")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        measure_opening(Path(folder) / "large", page)
        measure_list(Path(folder) / "many", page)
        measure_file(Path(folder) / "one")
        browser.close()


if __name__ == "__main__":
    main()
