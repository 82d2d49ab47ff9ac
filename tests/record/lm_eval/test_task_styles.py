"""c4 and the harness grade alike, in every style in which the harness's tasks are written."""

import pytest
from lm_eval import evaluate, simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from c4.lm_eval import C4LM
from c4.lm_eval._filters import cut_at, stops_of
from c4.lm_eval._tasks import find_harness_task
from c4.store.runs import find_runs, open_run
from tests.commands import c4
from tests.record.lm_eval.task_styles import STYLES, save_styles

pytestmark = pytest.mark.filterwarnings("ignore")  # the harness and its libraries warn of much

ANSWERS = (
    "{a}, yes",
    "So the answer is {a}",
    "first 7 or C, then {a} = 3 the end",
    "none [('of', 'DET')] ('these', 'NOUN')",
    "  {lower} ok",
    "{a}</s>",
)


NEVER_RIGHT = {"lowercase", "regex_second", "regex_pos", "regex_fallback", "bare"}
"""Styles in which none of these answers is the target; agreement on wrong ones counts too."""


class Scripted(LM):
    """A model that gives each document the answer that is its turn."""

    def __init__(self, turn):
        super().__init__()
        self.turn = turn

    def generate_until(self, requests):
        return [cut_at(text_for(r.doc, self.turn), stops_of(r.args[1])) for r in requests]

    def loglikelihood(self, requests):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def text_for(doc, turn):
    return ANSWERS[turn].format(a=doc["a"], lower=doc["a"].lower())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One task of each style."""
    return save_styles(tmp_path_factory.mktemp("styles"))


@pytest.fixture(scope="module")
def tasks(files):
    """The same tasks as c4 reads them."""
    return {name: find_harness_task(str(path)) for name, path in files.items()}


@pytest.fixture(scope="module")
def judged(tasks):
    """What the harness says of every answer: its samples by style and turn."""
    found = {}
    for turn in range(len(ANSWERS)):
        for harness in tasks.values():
            harness.task.set_fewshot_seed(1234)
        loaded = {"tasks": {name: harness.task for name, harness in tasks.items()}}
        samples = evaluate(Scripted(turn), loaded, bootstrap_iters=0)["samples"]
        found |= {(name, turn): first_filter(samples[name]) for name in tasks}
    return found


def first_filter(samples):
    return [sample for sample in samples if sample["filter"] == samples[0]["filter"]]


@pytest.mark.parametrize("name", STYLES)
def test_every_answer_is_graded_as_the_harness_grades_it(name, tasks, judged):
    task, verdicts = tasks[name], set()
    is_slow = name == "multi_choice_regex"  # it goes through all of Unicode for each answer
    for turn in (1, 3) if is_slow else range(len(ANSWERS)):
        for row, sample in zip(task.rows, judged[name, turn], strict=True):
            text = text_for(row["doc"], turn)
            value = sample.get(task.metric, sample[sample["metrics"][0]])
            assert task.score(text, row["doc"]) == (value == 1), text
            verdicts.add(value == 1)
    assert verdicts == ({False} if name in NEVER_RIGHT else {True, False})


@pytest.mark.parametrize("name", sorted(STYLES.keys() - {"random_text"}))
def test_every_prompt_is_the_harness_s(name, tasks, judged):
    asked = [sample["arguments"][0][0] for sample in judged[name, 0]]
    assert [row["prompt"] for row in tasks[name].rows] == asked


@pytest.mark.parametrize("name", STYLES)
def test_gates_watch_what_the_filter_returns(name, tasks, judged):
    """Or the whole text, where no regular expression picks the answer."""
    extract = tasks[name].extract
    for turn in range(len(ANSWERS)):
        for row, sample in zip(tasks[name].rows, judged[name, turn], strict=True):
            seen = sample["resps"][0][0]
            found = extract(text_for(row["doc"], turn))
            if extract.watches_all:
                assert (found.value, found.start, found.end) == (seen, 0, len(seen))
            elif found is None:
                assert extract.locating[-1].locate(seen) is None
            else:
                assert found.value == sample["filtered_resps"][0]
                assert name == "regex_fallback" or seen[found.start : found.end].strip()


SHAPE = {"gen_length": 32, "steps": 16, "block_length": 16}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["baseline", "cvee"])
def test_decodes_inside_the_harness_and_by_command_are_the_same(method, files, tasks, tmp_path):
    model = C4LM(model="tiny", method=method, **SHAPE)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in SHAPE.items()]
    for name, path in files.items():
        out = tmp_path / name
        done = c4("run", "--task", f"lm-eval:{path}", "--method", method, "--out", out, *words)
        assert done.exit_code == 0, done.output
        (folder,) = find_runs(out)
        rows = {row.source_row: row for row in open_run(folder).rows()}
        manager = TaskManager(include_defaults=False)
        asked = {"tasks": [str(path)], "task_manager": manager, "bootstrap_iters": 0}
        (samples,) = simple_evaluate(model=model, log_samples=True, **asked)["samples"].values()
        for sample in first_filter(samples):
            row = rows[sample["doc_id"]]
            value = sample.get(tasks[name].metric, sample[sample["metrics"][0]])
            assert row.prompt == sample["arguments"][0][0], name
            assert row.text.startswith(sample["resps"][0][0]), name
            assert row.correct == (float(value) == 1), name
