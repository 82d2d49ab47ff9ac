"""The jobs that engines can share out: decoding examples, and grading answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from c4.record.choices import MethodChoice, plan_methods
from c4.record.engines.work import Worker, WorkerFailedError
from c4.record.plan import Plan, RunConfig, load_planned, plan_recording
from c4.record.regrade import regrade
from c4.store.claims import Sign
from c4.store.locations import Location
from c4.store.runs import find_recorded_task
from c4.tasks import AnswerReading
from c4.tasks.readings import ReadingNames


@dataclass(frozen=True)
class Request:
    """What a user asks to decode of one task."""

    config: RunConfig
    choice: MethodChoice | None = None
    """The methods; None records the full decode."""
    cells: bool = False

    def plans(self) -> list[Plan]:
        if self.choice is None:
            return [plan_recording(self.config)]
        return plan_methods(self.config, self.choice, cells=self.cells)


@dataclass(frozen=True)
class DecodeJob:
    """Examples to be decoded, in one run after another, by one model."""

    requests: Sequence[Request]

    @cached_property
    def plans(self) -> list[Plan]:
        """Everything resolved and checked, as far as it can be from here."""
        return [plan for request in self.requests for plan in request.plans()]

    @property
    def folders(self) -> list[Location]:
        return [plan.folder for plan in self.plans]

    def for_workers(self) -> "DecodeJob":
        """The job as workers get it: they plan for the machine they come to, and delete nothing."""
        configs = [replace(r.config, fresh=False, elsewhere=False) for r in self.requests]
        pairs = zip(self.requests, configs, strict=True)
        return DecodeJob([replace(request, config=config) for request, config in pairs])

    def work(self, worker: Worker) -> list[int]:
        configs = [replace(r.config, device=worker.device) for r in self.requests]
        pairs = zip(self.requests, configs, strict=True)
        plans = [plan for r, c in pairs for plan in replace(r, config=c).plans()]
        model = load_planned(plans[0])
        done: list[int] = []
        for plan in plans:
            done += decode_plan(plan, model, worker.sign())
        return done


def decode_plan(plan: Plan, model: object, sign: Sign) -> list[int]:
    """Decode what a run lacks. An example that cannot be decoded is no fault of the others."""
    from c4.record.recorder import start_recording

    done = []
    with start_recording(plan, model, sign) as recording:  # type: ignore[arg-type]
        try:
            for row in recording:
                done.append(row.trajectory)
        except Exception as error:
            if recording.writer.claims.failed:
                raise WorkerFailedError(f"{type(error).__name__}: {error}") from error
            raise
    return done


@dataclass(frozen=True)
class GradeJob:
    """Answers of one run to be graded."""

    run: Location
    reading: AnswerReading
    everything: bool
    unsafe_code: bool
    since: int
    """The newest grade there was when the job was given; what has a newer one is done."""
    task: str | None = None
    """The run's task as a user names it, if it is the user's own code."""
    names: ReadingNames = field(default_factory=ReadingNames)
    """The extractor and the grader of the reading as a user names them."""

    @property
    def folders(self) -> list[Location]:
        return [self.run]

    def work(self, worker: Worker) -> list[int]:
        tasks = [] if self.task is None else [find_recorded_task(self.task, self.run)]
        self.names.load()
        grades = regrade(
            self.run,
            self.reading,
            tasks=tasks,
            everything=self.everything,
            unsafe_code=self.unsafe_code,
            since=self.since,
            sign=worker.sign(),
        )
        return [number for number, _ in grades]
