"""Runs that tests make, and what they hold."""

from dataclasses import asdict, fields

from c4.record.plan import plan_methods, plan_recording
from c4.record.recorder import start_recording
from c4.record.settings import MethodChoice
from c4.store.runs import open_run


def carry_out(plan, model=None):
    """Decode what a plan lacks; returns the rows that this session decoded."""
    with start_recording(plan, model) as recording:
        return list(recording)


def record(config, model=None):
    """Record the full decode; returns its folder and the rows that this session decoded."""
    plan = plan_recording(config)
    return plan.folder, carry_out(plan, model)


def run(config, method, *settings, cells=False, label=None):
    """Run a method; returns its folder and the rows that this session decoded."""
    (plan,) = plan_methods(config, MethodChoice([method], settings, label=label), cells=cells)
    return plan.folder, carry_out(plan)


def timeless(row):
    """A row without what a clock decides."""
    return {name: value for name, value in asdict(row).items() if "seconds" not in name}


def contents(folder):
    """Rows by their numbers, without what a clock decides, and the cells if the run keeps them."""
    made = open_run(folder)
    rows = {row.trajectory: timeless(row) for row in made.rows()}
    if not made.has_cells:
        return rows
    cells = {
        number: {spec.name: getattr(found, spec.name).tolist() for spec in fields(found)}
        for number, found in made.cells()
    }
    return rows, cells
