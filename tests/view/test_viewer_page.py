"""The page in a real browser: what it shows is what Parquet holds, whatever the text is."""

import re
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import polars as pl
import pytest
from decodes import write_run
from typer.testing import CliRunner
from viewing import browser, recordings, server, serving, viewer, watched  # noqa: F401 - fixtures

from c4.cli.app import app
from c4.gates.registry import GATES
from c4.gates.run_signals import load_signals
from c4.replay.decisions import replay
from c4.replay.exits import ask_gates
from c4.store.runs import open_run
from c4.view import Viewer, write_page

EVERY_STEP = """() => {
  const { app, decode } = c4;
  const told = { tokens: [], states: [], confidences: [], shown: [], model: {} };
  for (const name of ["token", "masked", "confidence"]) told.model[name] = [];
  for (let step = 1; step <= decode.steps; step += 1) {
    app.trajectory.player.go(step);
    const spans = [...document.querySelectorAll(".text-card .text .token")];
    told.tokens.push(spans.map((span) => Number(span.dataset.id)));
    told.states.push(spans.map((span) => span.dataset.state));
    told.confidences.push(spans.map((span) => Number(span.dataset.c)));
    told.shown.push(spans.map((span) => span.textContent));
    for (const name of Object.keys(told.model)) {
      told.model[name].push(spans.map((_, p) => decode.at(name, step, p)));
    }
  }
  return told;
}"""


def address(server, task, t, method="baseline", **more):
    run = f"model=made/task={task}/method={method}"
    return f"{server.address}#{urlencode({'run': run, 't': t, **more}, quote_via=quote)}"


@pytest.mark.parametrize("task", ["mmlu", "gsm8k", "humaneval"])
def test_every_step_on_screen_is_the_recorded_one(server, viewer, watched, task):
    cache = viewer.cache(f"model=made/task={task}/method=baseline")
    for recorded in list(cache.run)[:3]:
        watched.open(address(server, task, recorded.row.trajectory))
        told = watched.page.evaluate(EVERY_STEP)
        cells = recorded.cells
        for name in ("token", "confidence", "masked"):
            np.testing.assert_array_equal(told["model"][name], getattr(cells, name), name)
        np.testing.assert_array_equal(told["confidences"], cells.confidence)
        states = np.array(told["states"])
        np.testing.assert_array_equal(states != "committed", cells.masked)
        tokens = np.array(told["tokens"])
        np.testing.assert_array_equal(tokens[cells.masked], cells.token[cells.masked])
        # Before its block has begun, a position hides what it would be.
        blocks = cells.masked.argmax(axis=1) // cache.run.shape.block_length
        ends = (blocks + 1) * cache.run.shape.block_length
        later = np.arange(cache.run.shape.length)[None] >= ends[:, None]
        np.testing.assert_array_equal(states == "masked", cells.masked & later)
        assert {
            told["shown"][s][p] for s, p in zip(*np.nonzero(states == "masked"), strict=True)
        } <= {"▒"}


@pytest.mark.parametrize("task", ["mmlu", "gsm8k", "humaneval"])
def test_exits_on_screen_are_those_of_a_replay(server, viewer, watched, task):
    run = viewer.cache(f"model=made/task={task}/method=baseline").run
    gates = viewer.menu.make(run.task)
    (signals,) = load_signals(run)
    exits = ask_gates(gates, signals, run.cells())
    assert list(exits) == list(GATES)
    if task != "humaneval":  # whose programs a replay would run
        frame = pl.concat(replay(run, gates))
        for gate, steps in exits.items():
            fired = frame.filter(gate=gate).sort("trajectory")
            told = pl.when("fired").then("steps").otherwise(0)
            assert fired.select(told).to_series().to_list() == steps.tolist()
    for i, index in enumerate(signals.trajectory.tolist()[:4]):
        watched.open(address(server, task, index))
        drawn = watched.page.evaluate("c4.app.trajectory.lane.marks.map((m) => [m.gate, m.step])")
        listed = watched.page.evaluate(
            "[...document.querySelectorAll('.gate-row .exit')].map((exit) => exit.textContent)"
        )
        stops = {gate: int(steps[i]) for gate, steps in exits.items()}
        assert dict(map(tuple, drawn)) == {gate: step for gate, step in stops.items() if step}
        assert listed == [f"step {step}" if step else "never" for step in stops.values()]


def test_dragging_a_slider_asks_what_the_command_says(
    server, viewer, watched, recordings, tmp_path
):
    chosen = {"cvee": {"tau": "0.3", "gamma": "0"}}
    cohort = viewer.cohort(viewer.cache("model=made/task=gsm8k/method=baseline"))
    usual, moved = (cohort.exits("cvee", settings) for settings in ({}, chosen))
    index = int(cohort.signals.trajectory[np.flatnonzero((moved > 0) & (moved != usual))[0]])
    watched.open(address(server, "gsm8k", index))
    page = watched.page
    with page.expect_response(re.compile("/api/answer")):
        page.locator("#cvee-tau").evaluate(
            "(range) => { range.value = 0.3; range.dispatchEvent(new Event('input')); }"
        )
    with (
        page.expect_response(re.compile("/api/cohort")),
        page.expect_response(re.compile("/api/answer")),
    ):
        page.locator(".gate-row.open").get_by_label("gamma, exactly").fill("0")
        page.keyboard.press("Tab")
    watched.until("!c4.app.trajectory.asking && !c4.app.trajectory.askingCohort")
    command = page.evaluate("c4.app.trajectory.command")
    assert "--set cvee.tau=0.3 --set cvee.gamma=0" in command
    out = tmp_path / "decisions.parquet"
    words = command.split()[1:]
    result = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert result.exit_code == 0, result.output
    decisions = pl.read_parquet(out)
    row = decisions.filter(pl.col("trajectory") == index).row(0, named=True)
    assert page.locator(".gate-row.open .exit").text_content() == f"step {row['steps']}"
    shown = page.locator(".gate-row.open .cohort-numbers strong").all_text_contents()
    accuracy, premature = decisions["correct"].mean(), decisions["premature"].mean()
    saving = 1 - (decisions["steps"] / decisions["budget"]).mean()
    assert shown == [f"{100 * share:.1f} %" for share in (accuracy, saving, premature)]
    # The address holds all of it.
    watched.until("location.hash.includes('cvee.gamma')")
    watched.open(page.url)
    assert watched.page.locator(".gate-row.open .exit").text_content() == f"step {row['steps']}"
    assert watched.page.locator("#cvee-tau").input_value() == "0.3"


def test_a_setting_that_makes_no_sense_is_refused_beside_its_slider(server, watched):
    watched.open(address(server, "gsm8k", 41))
    box = watched.page.get_by_label("tau, exactly")
    box.first.fill("7")
    watched.page.keyboard.press("Tab")
    note = watched.page.locator(".gate-row.open .problem")
    note.wait_for()
    assert "tau from 0 to 1" in note.text_content()
    watched.errors[:] = [e for e in watched.errors if "400" not in e]  # the browser logs refusals


HOSTILE = (
    "<script>document.title='owned'</script></script><img src=x onerror=alert(1)> "
    "\u202eevil\u202c \u2067x\u2069 \x1b[31mred\x1b[0m \x00\x07 &amp; ${1+1} "
    "漢字 😀 \U00010348 \U0001f469\u200d\U0001f680 \U00020000 \U000300a0 \U000e0041 "
    "\U000f0000 \U0010fffd"
)
BIG = "x" * 100_000


def test_hostile_text_is_only_text(tmp_path, watched):
    words = ["<script>alert(1)</script>", "</script>", "\u202e", "\x1b[31m", BIG]
    text = "<script>alert(1)</script></script>\u202e\x1b[31m" + BIG + " is 7."
    names = ["<b>x</b>", "a\u202eb"]
    for name in names:
        write_run(tmp_path, "gsm8k", [1], model=name, words=words, text=text, prompt=HOSTILE + BIG)
    viewer = Viewer(tmp_path)
    assert len(viewer.runs) == len(names)
    with serving(viewer) as server:
        for key in viewer.runs:
            run = quote(key, safe="")
            watched.open(f"{server.address}#run={run}&t=1&step=20&all=1")
            page = watched.page
            page.locator(".prompt summary").click()
            shown = page.locator(".prompt pre").text_content()
            assert "<script>document.title='owned'</script></script><img" in shown
            assert "⟨U+202E⟩evil" in shown
            assert "␛[31mred" in shown
            assert "漢字 😀 \U00010348" in shown
            assert "⟨U+E0041⟩" in shown
            assert len(shown) > 100_000
            tokens = page.locator(".text-card .text .token").all_text_contents()
            assert tokens[:4] == ["<script>alert(1)</script>", "</script>", "⟨U+202E⟩", "␛[31m"]
            assert tokens[4].endswith("(100,000 characters)")
            page.locator(".tabs [data-view=cohort]").click()
            page.wait_for_selector(".cohort table")
            page.locator(".tabs [data-view=compare]").click()
            page.wait_for_selector(".compare-side .token")
            assert page.locator("img, script:not([src])").count() == 0
            assert "owned" not in page.title()
        hosts = {urlsplit(url).netloc for url in watched.requests if url.startswith("http")}
        assert hosts == {f"127.0.0.1:{server.port}"}
        write_page(tmp_path / "page.html", viewer, [(key, 1) for key in viewer.runs])
    watched.requests.clear()
    watched.open((tmp_path / "page.html").as_uri() + "#step=20")
    assert (
        watched.page.locator(".text-card .text .token").first.text_content()
        == "<script>alert(1)</script>"
    )
    assert {urlsplit(url).scheme for url in watched.requests} <= {"file", "about", "data"}


def test_the_file_shows_the_same_steps_without_a_server(viewer, watched, tmp_path):
    keys = [(f"model=made/task={task}/method=baseline", 41) for task in ("mmlu", "humaneval")]
    target = tmp_path / "page.html"
    write_page(target, viewer, keys)
    for run, t in keys:
        watched.open(f"{target.as_uri()}#run={quote(run, safe='')}&t={t}")
        told = watched.page.evaluate(EVERY_STEP)
        cells = open_run(viewer.cache(run).run.folder).trajectory(t).cells
        np.testing.assert_array_equal(told["confidences"], cells.confidence)
        np.testing.assert_array_equal(told["model"]["token"], cells.token)
        assert watched.page.locator(".gate-body input").count() == 0  # no gate behind them
    watched.page.locator(".tabs [data-view=cohort]").click()
    watched.page.wait_for_selector(".cohort table")
    assert all(url.startswith(("file:", "about:")) for url in watched.requests)


def test_nothing_moves_while_scrubbing(server, watched):
    watched.open(address(server, "humaneval", 42))
    places = watched.page.evaluate("""() => {
      const { app, decode } = c4;
      const seen = new Set();
      for (let step = 1; step <= decode.steps; step += 1) {
        app.trajectory.player.go(step);
        app.trajectory.point(step % decode.length);
        const names = [".inspector", ".player", ".stage", ".gates", ".left-texts"];
        const boxes = names.map((name) => document.querySelector(name).getBoundingClientRect());
        seen.add(JSON.stringify(boxes));
      }
      return seen.size;
    }""")
    assert places == 1


def test_keys_do_what_the_help_says(server, watched):
    watched.open(address(server, "gsm8k", 41))
    page = watched.page
    step = "c4.app.trajectory.player.step"
    for key, expected in [
        ("ArrowRight", 2),
        ("Shift+ArrowRight", 6),
        ("ArrowLeft", 5),
        ("End", 20),
        ("Home", 1),
    ]:
        page.keyboard.press(key)
        assert page.evaluate(step) == expected, key
    page.keyboard.press("e")
    assert page.evaluate(step) in page.evaluate("c4.app.trajectory.outcomes.map((o) => o.steps)")
    page.keyboard.press("5")
    assert page.locator("[data-layer=commit]").get_attribute("aria-checked") == "true"
    page.keyboard.press("+")
    assert page.evaluate("c4.app.trajectory.axis.isZoomed")
    page.keyboard.press("0")
    page.keyboard.press("d")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.keyboard.press("ArrowDown")
    assert "position" in page.locator(".inspector").text_content()
    page.keyboard.press("?")
    assert page.locator("dialog.help").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Space")
    watched.until(f"{step} > 1 || c4.app.trajectory.player.playing")
    page.keyboard.press("c")
    page.wait_for_selector(".cohort table")


def test_a_mark_of_the_cohort_opens_its_trajectory(server, watched):
    watched.open(address(server, "gsm8k", 41, view="cohort"))
    page = watched.page
    watched.until("c4.app.cohort.phase.points.length > 0")
    point = page.evaluate(
        "(() => { const { x, y, t } = c4.app.cohort.phase.points[0]; return { x, y, t }; })()"
    )
    page.locator("section[aria-label='Exits against stabilization'] canvas").click(
        position={"x": point["x"], "y": point["y"]}
    )
    watched.until("c4.decode && document.querySelector('.headline')")
    assert page.evaluate("c4.state.get('view')") == ""
    assert page.evaluate("Number(c4.state.get('t'))") in page.evaluate(
        "c4.app.cohort.data.trajectory"
    )


def test_two_runs_stand_side_by_side_also_where_only_results_were_kept(server, watched):
    watched.open(address(server, "gsm8k", 41, view="compare", step=7))
    page = watched.page
    page.wait_for_selector(".compare-side .token")
    assert (
        page.locator(".compare-side select")
        .nth(1)
        .evaluate("(s) => s.selectedOptions[0].textContent")
        == "C4 (results)"
    )
    assert page.locator(".done").all_text_contents() == ["step 7", "step 7"]


def test_the_list_filters_scrolls_and_opens(server, watched):
    watched.open(server.address)
    page = watched.page
    watched.until("document.querySelector('.count').textContent === '24 trajectories'")
    page.get_by_label("Task", exact=True).select_option("mmlu")
    watched.until("document.querySelector('.count').textContent === '7 trajectories'")
    page.get_by_label("Search", exact=True).fill("problem 45")
    watched.until("document.querySelector('.count').textContent === '1 trajectory'")
    page.locator(".row").first.click()
    watched.until("c4.decode.row.trajectory === 45")


@pytest.mark.parametrize("width", [360, 820, 1920])
def test_no_screen_is_wider_than_its_window(server, watched, width):
    watched.page.set_viewport_size({"width": width, "height": 800})
    for view in ("", "cohort", "compare", "list"):
        watched.open(address(server, "humaneval", 42, view=view))
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
        main = watched.page.locator("main")
        assert main.evaluate("(main) => main.scrollWidth - main.clientWidth") <= 0
        last = watched.page.locator(".tool").last.bounding_box()
        assert last["x"] + last["width"] < width
