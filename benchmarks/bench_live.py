"""Every method live on every task, and whether the loop and the speedups reach their aims.

    python benchmarks/bench_live.py [--model tiny] [--n 50] [--timed 20] [--passes 3]

Writes the tables of docs/methods.md, if all tasks and methods are in it. Results and timings are
kept in --out (`c4 run` and `c4 bench` write and read the same), so a second call decodes only what
is missing; timings count only if they are of the same weights and settings.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from c4.decode.loop import decode
from c4.models import Denoiser, LoadedModel, Reading
from c4.record.bench import Bench, TimingProtocol
from c4.record.methods import METHODS, ResolvedMethod
from c4.record.plan import Plan, RunConfig, choose_methods, load_planned, plan_methods
from c4.record.recorder import start_recording
from c4.record.settings import MethodChoice
from c4.replay.calibration import TOLERANCE
from c4.store.arrays import IntArray
from c4.store.summary import RunSummary, summarise
from c4.store.timings import read_timings, write_timings
from c4.tasks import TASKS
from c4.tasks.vocabulary import Vocabulary

DOCUMENT = Path(__file__).parents[1] / "docs" / "methods.md"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
SAVING_AIM = 0.64
LOOP_LIMIT = 1.05
SPEEDUP_SHARE = 0.9
LOOP_TASKS = ("mmlu", "math", "humaneval")
FIRST_TIMED = 40
"""Where the timed examples begin in every split: behind the calibration pool."""

Timings = dict[tuple[str, str], dict[str, Any]]
"""Rows of `BENCH` by task and method."""


@dataclass(frozen=True)
class Options:
    model: str
    n: int
    timing: TimingProtocol
    out: Path
    tasks: Sequence[str]
    methods: Sequence[str]

    @property
    def choice(self) -> MethodChoice:
        return MethodChoice(self.methods)

    @property
    def complete(self) -> bool:
        """Whether nothing is left out."""
        return set(self.tasks) == set(TASKS) and set(self.methods) == set(METHODS)

    def config(self, task: str, **changes: Any) -> RunConfig:
        asked = {"n": self.n, "source": "embedded"} | changes
        return RunConfig(task=task, model=self.model, out=self.out, **asked)


def measure(options: Options) -> tuple[list[RunSummary], Timings]:
    """What every method does on every task, and how long it takes."""
    model: LoadedModel | None = None
    summaries = []
    timings: Timings = {}
    for task in options.tasks:
        plans = plan_methods(options.config(task), options.choice)
        model = model or load_planned(plans[0])
        for plan in plans:
            started = time.perf_counter()
            with start_recording(plan, model) as recording:
                decoded = sum(1 for _ in recording)
            wanted = plan.wanted
            summaries.append(summarise(plan.folder, wanted))
            seconds = time.perf_counter() - started
            print(f"{task} {plan.folder.name}: {decoded} decoded in {seconds:.0f} s", flush=True)
        timings |= {(task, row["method"]): row for row in time_task(options, task, model)}
    return summaries, timings


def time_task(options: Options, task: str, model: LoadedModel) -> list[dict[str, Any]]:
    """The timing protocol, unless the disk has it for these methods and weights already."""
    config = options.config(task, n=options.timing.examples, skip=FIRST_TIMED, graded=False)
    plan, methods = choose_methods(config, options.choice)
    bench = Bench(plan, methods, model, options.timing)
    if known := known_timings(options, bench):
        return known
    for _ in bench:
        pass
    table = bench.table()
    written = write_timings(options.out, plan.checkpoint.name, task, table)
    print(f"{task}: timed, {written}", flush=True)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def known_timings(options: Options, bench: Bench) -> list[dict[str, Any]]:
    """The rows that a bench would make, if the disk has all of them; else none."""
    wanted = asdict(options.timing) | {"threads": torch.get_num_threads()}
    rows = {
        row["identity"]: row
        for row in read_timings(options.out).to_pylist()
        if wanted.items() <= row.items() and row["speedup"] is not None
    }
    identities = [bench.identity(method) for method in bench.methods]
    return [rows[i] for i in identities] if rows.keys() >= set(identities) else []


class TimedReads:
    """A denoiser that knows how long its forward passes took."""

    def __init__(self, denoiser: Denoiser) -> None:
        self.denoiser = denoiser
        self.mask_id, self.shift, self.logits = denoiser.mask_id, denoiser.shift, denoiser.logits
        self.interpret = denoiser.interpret
        self.seconds = 0.0

    def read(self, ids: IntArray, start: int) -> Reading:
        began = time.perf_counter()
        reading = self.denoiser.read(ids, start)
        self.seconds += time.perf_counter() - began
        return reading


def loop_cost(options: Options, task: str) -> float:
    """A c4 decode over the forward passes it makes, both gates on."""
    config = options.config(task, n=options.timing.n, graded=False)
    plan, (method,) = choose_methods(config, MethodChoice(["c4"]))
    model = load_planned(plan)
    whole_decodes(plan, method, model)  # warm-up
    whole, passes = whole_decodes(plan, method, model)
    return whole / passes


def whole_decodes(plan: Plan, method: ResolvedMethod, model: LoadedModel) -> tuple[float, float]:
    """Seconds of the decodes, and of the forward passes in them."""
    vocabulary = Vocabulary(model.tokenizer_json, model.end_ids)
    reads = TimedReads(model.denoiser)
    whole = 0.0
    for sample in plan.sample_set.samples:
        prompt = np.array(model.encode_prompt(sample.example.prompt), dtype=np.int64)
        choices = sample.example.choices
        began = time.perf_counter()
        gate = method.new_gate(plan.task, vocabulary, plan.shape, choices)
        decode(reads, prompt, plan.shape, rule=method.rule, gate=gate)
        whole += time.perf_counter() - began
    return whole, reads.seconds


def render(summaries: Sequence[RunSummary], timings: Timings) -> str:
    """The table as Markdown; an accuracy more than the tolerance below the baseline stands out."""
    lines = [
        "| task | method | accuracy | against baseline | steps | saving | exits | TPS | speedup |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for s in summaries:
        timing = timings.get((s.task, s.method), {})
        tps, speedup = timing.get("tps"), timing.get("speedup")
        kept = s.drop_points is None or s.drop_points <= TOLERANCE + 1e-9
        accuracy = "–" if s.accuracy is None else f"{100 * s.accuracy:.1f}"
        cells = [
            s.task if s.method == "baseline" else "",
            f"`{s.method}`",
            marked(accuracy, kept),
            "–" if s.drop_points is None else f"{0 - s.drop_points:+.1f}",
            f"{s.steps:.1f}",
            f"{s.saving:.1%}",
            f"{s.fired:.0%}",
            "–" if tps is None else f"{tps:.0f}",
            "–" if speedup is None else f"{speedup:.2f}×",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def aims(summaries: Sequence[RunSummary], timings: Timings) -> str:
    """What c4 saves, loses and gains on each task, as Markdown; what misses its aim stands out."""
    lines = [
        f"| task | saving (aim {SAVING_AIM:.0%}) | points lost (limit {TOLERANCE}) "
        f"| speedup | step ratio | their quotient (aim {SPEEDUP_SHARE}) |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for s in summaries:
        if s.method != "c4":
            continue
        cells = [
            s.task,
            marked(f"{s.saving:.1%}", s.saving >= SAVING_AIM),
            "–"
            if s.drop_points is None
            else marked(f"{s.drop_points:.1f}", s.drop_points <= TOLERANCE + 1e-9),
            *speedup_cells(timings.get((s.task, "c4"), {})),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def speedup_cells(timing: dict[str, Any]) -> list[str]:
    """Speedup, step ratio, and how much of the one the other is."""
    if timing.get("speedup") is None:
        return ["–"] * 3
    share = timing["speedup"] / timing["step_ratio"]
    return [
        f"{timing['speedup']:.2f}×",
        f"{timing['step_ratio']:.2f}×",
        marked(f"{share:.2f}", share >= SPEEDUP_SHARE),
    ]


def marked(text: str, kept: bool) -> str:
    return text if kept else f"🔴 **{text}**"


def loop_line(options: Options) -> str:
    """What the loop costs beside its forward passes, as a sentence."""
    costs = []
    for task in LOOP_TASKS:
        ratio = loop_cost(options, task)
        costs.append(f"{task} {marked(f'{ratio:.3f}', ratio <= LOOP_LIMIT)}")
    return f"A c4 decode over the forward passes it makes (limit {LOOP_LIMIT}): {', '.join(costs)}."


def write_measured(options: Options, parts: Sequence[str]) -> None:
    """Put the tables where the document has them."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    said = (
        f"Measured with `python benchmarks/bench_live.py --n {options.n} --timed "
        f"{options.timing.n} --passes {options.timing.passes}` on `{options.model}`: "
        f"{options.n} evaluation problems a task; timed are problems {FIRST_TIMED} to "
        f"{FIRST_TIMED + options.timing.n - 1} of each split, in {options.timing.passes} passes."
    )
    body = "\n\n".join([said, *parts])
    DOCUMENT.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--n", type=int, default=50, help="problems of each task")
    parser.add_argument("--timed", type=int, default=20, help="problems of each task to time")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    parser.add_argument("--task", action="append", choices=list(TASKS), help="only these")
    parser.add_argument("--method", action="append", choices=list(METHODS), help="only these")
    parser.add_argument("--no-table", action="store_true", help="leave docs/methods.md alone")
    given = parser.parse_args()
    methods = given.method or list(METHODS)
    options = Options(
        model=given.model,
        n=given.n,
        timing=TimingProtocol(n=given.timed, passes=given.passes),
        out=given.out,
        tasks=given.task or list(TASKS),
        methods=["baseline", *(m for m in methods if m != "baseline")],
    )
    summaries, timings = measure(options)
    parts = [aims(summaries, timings), loop_line(options), render(summaries, timings)]
    print("\n\n".join(parts))
    if options.complete and not given.no_table:
        write_measured(options, parts)


if __name__ == "__main__":
    main()
