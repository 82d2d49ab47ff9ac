"""Take the pictures of docs/view.md from runs that exist, with the server and Chromium.

It takes a folder with recordings of gsm8k and mmlu, and with `c4 run --method c4 --cells` of gsm8k.

    python docs/view_pictures.py docs-out
"""

import io
import shutil
import sys
import threading
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from c4.view import Viewer
from c4.view.server import Server

FOLDER = Path(__file__).parent / "view"
RUN = "model=tiny/task=gsm8k/method=baseline"
SHOTS = {
    "trajectory": (1280, 1010, "light", {"t": 46, "step": 40}),
    "trajectory-dark": (1920, 1080, "dark", {"t": 46, "step": 58, "layer": "entropy"}),
    "texts": (1280, 900, "light", {"t": 46, "step": 62, "scroll": 1}),
    "list": (1280, 700, "dark", {"t": 46, "exits": "premature", "gate2": "prophet"}),
    "cohort": (1280, 860, "light", {"view": "cohort"}),
    "cohort-dark": (1280, 860, "dark", {"view": "cohort"}),
    "compare": (1280, 680, "light", {"view": "compare", "t": 46, "step": 9}),
    "compare-dark": (1280, 680, "dark", {"view": "compare", "t": 46, "step": 9}),
    "phone": (390, 844, "light", {"t": 46, "step": 40}),
    "phone-dark": (390, 844, "dark", {"view": "cohort"}),
    "phone-list": (390, 844, "light", {"view": "list", "t": 46}),
}
"""Width, height, theme and address of every picture."""
COLOURS = 255
"""Enough to tell every method apart, in a third of the bytes."""


def main() -> None:
    server = Server(Viewer(Path(sys.argv[1])))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in SHOTS:
            take(browser, server.address, name)
        browser.close()
    server.stop()
    thread.join()


def take(browser: Browser, address: str, name: str) -> None:
    """Open one view and keep it as a small PNG."""
    width, height, theme, state = SHOTS[name]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.goto(f"{address}#{urlencode({'run': RUN, **state})}")
    page.wait_for_selector("html[data-ready]")
    page.wait_for_timeout(4000)  # marks and numbers of the whole run arrive after the page
    if "scroll" in state:
        page.locator(".left-texts").evaluate("(texts) => texts.scrollIntoView()")
    picture = Image.open(io.BytesIO(page.screenshot()))
    target = FOLDER / f"{name}.png"
    picture.convert("RGB").quantize(COLOURS).save(target, optimize=True)
    print(f"{target}: {target.stat().st_size:,} bytes")
    page.close()


if __name__ == "__main__":
    main()
