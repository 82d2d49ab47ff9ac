"""lm-evaluation-harness, both ways."""

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4.errors import ConfigError
from c4.lm_eval._filters import FilterExtractor, Regex, cut_at
from c4.lm_eval._load import _require_single, refusal
from c4.lm_eval._model import C4LM, _batch, _task_for
from c4.lm_eval._tasks import (
    LENGTH_NAMES,
    find_harness_task,
    find_lm_eval_task,
    say_once,
    warn_of_sampling,
)
from c4.store import find_runs, open_run
from tests.commands import c4
from tests.record.lm_eval.own_tasks import KINDS, save_tasks

pytestmark = pytest.mark.filterwarnings("ignore")  # the harness and its libraries warn of much


@pytest.fixture(scope="module", autouse=True)
def no_survey():
    """Evaluations do not ask pip which packages there are, which takes most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lm_eval.evaluator.add_env_info", lambda _: None)
        yield


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """The four tasks, in a folder of their own."""
    return save_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def recorded(tasks, tmp_path_factory):
    """All four recorded by c4."""
    out = tmp_path_factory.mktemp("lm-eval") / "runs"
    for path in tasks.values():
        result = c4("record", "--task", f"lm-eval:{path}", "--out", out)
        assert result.exit_code == 0, result.output
    return out


SHORT = {"steps": 8}
"""Of a decode of which only the run's name and shape matter."""


def model_of(tasks, **options):
    """A model that knows the tasks' files."""
    return C4LM(model="tiny", include=str(tasks["own_letter"].parent), **options)


def evaluate(tasks, **options):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    paths = [str(path) for path in tasks.values()] if isinstance(tasks, dict) else tasks
    options["task_manager"] = TaskManager(include_defaults=False)
    return simple_evaluate(tasks=paths, log_samples=True, bootstrap_iters=0, **options)


@pytest.fixture(scope="module")
def evaluated(tasks, recorded):
    """The same four in the harness, with c4 as its model and its runs beside the recorded ones."""
    model = model_of(tasks, record=str(recorded))
    return evaluate(tasks, model=model)["samples"]


def first_filter(samples):
    first = samples[0]["filter"]
    return {s["doc_id"]: s for s in samples if s["filter"] == first}


@pytest.mark.parametrize("name", KINDS)
def test_every_grade_is_the_harness_s(name, recorded, evaluated):
    (folder,) = [run for run in find_runs(recorded) if open_run(run).task_name == f"lm-eval:{name}"]
    rows = {row.source_row: row for row in open_run(folder).rows()}
    judged = first_filter(evaluated[name])
    assert rows.keys() == judged.keys()
    metric = "acc" if name == "own_whole" else "exact_match"
    for number, row in rows.items():
        assert row.correct == (judged[number][metric] >= 1), row.text
    if name in ("own_number", "own_letter"):
        assert any(row.correct for row in rows.values())  # agreement on nothing would say nothing


def test_the_model_decodes_what_was_recorded_and_nothing_twice(recorded, evaluated):
    """Its runs are those that `c4 record` made: no other folder, no more trajectories."""
    runs = [open_run(folder) for folder in find_runs(recorded)]
    assert sorted(run.task_name for run in runs) == sorted(f"lm-eval:{name}" for name in KINDS)
    assert {len(run) for run in runs} == {3}
    for run in runs:
        texts = {row.source_row: row.text for row in run.rows()}
        for sample in evaluated[run.task_name.removeprefix("lm-eval:")]:
            assert texts[sample["doc_id"]].startswith(sample["resps"][0][0])


def test_prompts_are_the_harness_s_with_its_few_shot_examples(recorded, evaluated):
    (folder,) = [run for run in find_runs(recorded) if "own_shots" in str(run)]
    asked = {s["doc_id"]: s["arguments"][0][0] for s in evaluated["own_shots"]}
    for row in open_run(folder).rows():
        assert row.prompt == asked[row.source_row]
        assert row.prompt.count("A: Let's think step by step.") == 2


def test_gates_watch_the_filter_and_calibrate_on_it(tasks, recorded):
    path = tasks["own_number"]
    result = c4("replay", "--runs", recorded, "--task", f"lm-eval:{path}", "--json")
    assert result.exit_code == 0, result.output
    assert {row["n"] for row in json.loads(result.stdout)} == {3}


def test_a_recording_is_not_read_by_another_filter_than_its_own(tasks, recorded, tmp_path):
    edited = tmp_path / "own_letter.yaml"
    edited.write_text(tasks["own_letter"].read_text().replace("[A-D]", "[Q-Z]"))
    letters = recorded / "model=tiny" / "task=lm-eval%3Aown_letter"
    refused = c4("replay", "--runs", letters, "--task", f"lm-eval:{edited}")
    assert refused.exit_code == 2
    assert "task lm-eval:own_letter was edited (config_sha256: " in refused.stderr
    assert "[Q-Z]" in refused.stderr


def test_a_method_decodes_and_stops_inside_the_harness(tasks):
    only = {"own_number": tasks["own_number"]}
    model = model_of(tasks, method="cvee", batch_size=2, **SHORT)
    samples = evaluate(only, model=model, limit=2)["samples"]["own_number"]
    assert len(samples) == 2
    arguments = f"model=tiny,method=cvee,steps=8,include={tasks['own_number']}"
    by_name = evaluate(only, model="c4", model_args=arguments, limit=2)
    again = by_name["samples"]["own_number"]
    assert [s["doc_id"] for s in samples] == [s["doc_id"] for s in again]


def test_the_harness_s_own_chat_template_gives_the_same_prompt(tasks):
    only = {"own_letter": tasks["own_letter"]}
    model = model_of(tasks, **SHORT)
    plain, templated = (
        evaluate(only, model=model, limit=2, apply_chat_template=chat)["samples"]["own_letter"]
        for chat in (False, True)
    )
    assert [s["resps"] for s in plain] == [s["resps"] for s in templated]


def test_a_run_says_whether_its_prompts_went_through_the_chat_template(tasks, tmp_path):
    only = {"own_letter": tasks["own_letter"]}
    model = model_of(tasks, record=str(tmp_path), chat=False)
    evaluate(only, model=model, limit=1)
    (folder,) = find_runs(tmp_path)
    run = open_run(folder)
    assert run.manifest.identity["chat_template"] is False
    (row,) = run.rows()
    tokenizer = model._tokenizer
    assert list(row.prompt_ids) == tokenizer(row.prompt, add_special_tokens=False)["input_ids"]
    other = c4("record", "--task", f"lm-eval:{tasks['own_letter']}", "--out", tmp_path)
    assert other.exit_code == 2
    assert "chat_template" in other.stderr


def test_settings_of_the_request_come_before_those_of_the_file(tasks, tmp_path):
    model = model_of(tasks, record=str(tmp_path), **SHORT)
    gen_kwargs = {"max_gen_toks": 64, "until": ["A"]}
    found = evaluate([str(tasks["own_letter"])], model=model, limit=1, gen_kwargs=gen_kwargs)
    (sample,) = found["samples"]["own_letter"]
    (folder,) = find_runs(tmp_path)
    run = open_run(folder)
    assert run.manifest.shape.length == 64
    assert run.task_name != "lm-eval:own_letter"
    assert "A" not in sample["resps"][0][0]


@pytest.fixture(scope="module")
def templated(tasks, tmp_path_factory):
    """A run whose prompts the harness put through the chat template, and its samples."""
    out = tmp_path_factory.mktemp("templated") / "runs"
    model = model_of(tasks, record=str(out), **SHORT)
    only = {"own_letter": tasks["own_letter"]}
    found = evaluate(only, model=model, samples={"own_letter": [2, 1]}, apply_chat_template=True)
    (folder,) = find_runs(out)
    return out, open_run(folder), found["samples"]["own_letter"]


def test_what_the_harness_asked_otherwise_is_judged_as_it_judges(templated):
    _, run, samples = templated
    assert run.task_name.startswith("lm-eval:own_letter+")
    judged = {s["arguments"][0][0]: s["exact_match"] == 1 for s in samples}
    assert {row.prompt: row.correct for row in run.rows()} == judged
    assert True in judged.values()


def test_what_the_harness_asked_otherwise_can_be_read_and_not_gone_on_with(templated, tasks):
    out, run, _ = templated
    name = f"lm-eval:{tasks['own_letter']}{run.task_name.removeprefix('lm-eval:own_letter')}"
    unnamed = c4("replay", "--runs", out)
    assert f"--task {name}" in " ".join(unnamed.stderr.split())
    refused = c4("record", "--task", name, "--out", out)
    assert refused.exit_code == 2
    assert "evaluate again with c4.lm_eval.C4LM" in " ".join(refused.stderr.split())
    replayed = c4("replay", "--runs", out, "--task", name, "--json")
    assert replayed.exit_code == 0, replayed.output
    assert {row["n"] for row in json.loads(replayed.stdout)} == {2}


def test_other_stop_strings_than_the_task_s_are_not_guessed(tasks):
    with pytest.raises(ConfigError, match="stop strings that are not its task's"):
        find_lm_eval_task(f"{tasks['own_letter']}+until+01234567")


def test_prompts_from_the_harness_s_cache_are_not_put_through_the_template_again(tasks, tmp_path):
    place = str(tasks["own_letter"])
    (request,) = requests_of(place, FILE)
    message = {"role": "user", "content": request.args[0]}
    templated = C4LM(model="tiny").apply_chat_template([message])
    request.arguments = (templated, FILE)
    model = model_of(tasks, record=str(tmp_path), **SHORT)
    model.generate_until([request])
    (folder,) = find_runs(tmp_path)
    assert open_run(folder).manifest.identity["chat_template"] is False


def test_the_harness_keeps_its_own_models():
    from lm_eval.api.registry import get_model

    assert get_model("dummy").__name__ == "DummyLM"
    assert get_model("c4") is C4LM


@pytest.mark.parametrize("kind", ["group", "tag"])
def test_groups_and_tags_are_refused_with_their_members(tasks, tmp_path, kind):
    from lm_eval.tasks import TaskManager

    folder = tmp_path / "more"
    folder.mkdir()
    text = tasks["own_letter"].read_text()
    (folder / "one.yaml").write_text(text + "tag: both\n")
    (folder / "group.yaml").write_text("group: family\ntask: [own_letter, other]\n")
    entry = TaskManager(include_defaults=False, include_path=str(folder)).task_index
    name = {"group": "family", "tag": "both"}[kind]
    with pytest.raises(ConfigError, match=rf"is a {kind} of .*; name one task: own_letter"):
        _require_single(name, entry[name])
    with pytest.raises(ConfigError, match="is a group of tasks; name the file of one"):
        find_harness_task(str(folder / "group.yaml"))


def test_partial_credit_is_refused_before_anything_is_decoded(tasks, tmp_path):
    path = tasks["own_whole"].with_name("own_partial.yaml")
    (path.parent / "partial.py").write_text(
        "def f1(doc, results):\n"
        "    words = results[0].split()\n"
        "    return {'f1': words.count(doc['a']) / max(1, len(words))}\n"
    )
    text = tasks["own_whole"].read_text().partition("process_results")[0]
    metric = "  - {metric: f1, aggregation: mean, higher_is_better: true}\n"
    whole = text.replace("own_whole", "own_partial") + "process_results: !function partial.f1\n"
    path.write_text(whole + "metric_list:\n" + metric)
    refused = c4("record", "--task", f"lm-eval:{path}", "--out", tmp_path / "runs")
    assert refused.exit_code == 2
    assert "c4 needs a verdict for each answer" in " ".join(refused.stderr.split())
    assert not (tmp_path / "runs").exists()
    path.unlink()


@pytest.mark.parametrize(("asked", "batch"), [(None, 1), (4, 4), ("8", 8), ("auto", None)])
def test_a_batch_size_is_a_number_or_what_fits(asked, batch):
    assert _batch(asked) == batch
    assert _batch("auto:4") is None
    with pytest.raises(ConfigError, match="a number or auto"):
        _batch("many")


FILE = {"until": ["</s>"], "max_gen_toks": 16}
OTHERS = [{"max_gen_toks": 64}, {"until": "B"}]
OTHERS += [{"max_gen_toks": None, name: 64} for name in LENGTH_NAMES[1:]]
OTHERS += [{"until": []}, {"max_gen_toks": 64, "until": ["B", "C"]}]


def requests_of(place, *settings):
    """One request of a task for each of some settings, as the harness makes them."""
    from lm_eval.api.instance import Instance

    rows = find_harness_task(place).rows
    return [
        Instance("generate_until", row["doc"], (row["prompt"], kwargs), 0, ("own_letter", n, 1))
        for n, (row, kwargs) in enumerate(zip(rows, settings, strict=False))
    ]


def test_a_request_like_the_file_gets_the_task_that_is_recorded(tasks):
    place = str(tasks["own_letter"])
    for same in (FILE, FILE | {"until": "</s>"}, FILE | {"max_gen_toks": 20, "do_sample": False}):
        task = _task_for(place, "own_letter", requests_of(place, same))
        assert task.name == "lm-eval:own_letter"


@pytest.mark.parametrize("changes", OTHERS)
def test_gates_and_lengths_follow_the_request(tasks, changes):
    place, kwargs = str(tasks["own_letter"]), FILE | changes
    task = _task_for(place, "own_letter", requests_of(place, kwargs))
    assert task.name.startswith("lm-eval:own_letter+")
    assert list(task.extract.until) == list(kwargs["until"])
    assert not task.extract.watches_all  # the file's filter all the same
    assert task.shape.length == (64 if 64 in kwargs.values() else 32)
    assert task.fixed_shape == (64 in kwargs.values())
    other = _task_for(place, "own_letter", requests_of(place, kwargs | {"until": ["Z"]}))
    assert task.name != other.name


def test_requests_of_different_lengths_are_decoded_apart(tasks, tmp_path):
    place = str(tasks["own_letter"])
    settings = [FILE | {"max_gen_toks": None, "max_new_tokens": n} for n in (32, 64)]
    requests = requests_of(place, *settings)
    assert len(C4LM(record=str(tmp_path), include=place).generate_until(requests)) == 2
    lengths = {open_run(folder).manifest.shape.length for folder in find_runs(tmp_path)}
    assert len(find_runs(tmp_path)) == 2
    assert 64 in lengths


def test_only_a_metric_of_zero_and_one_is_a_verdict(tasks, monkeypatch):
    harness = find_harness_task(str(tasks["own_whole"]))
    results = {}
    monkeypatch.setattr(harness.task, "process_results", lambda *_: results)
    for value in (0, 1, 0.0, 1.0, True, False):
        results["acc"] = value
        assert harness.score("text", {}) is bool(value)
    for value in (100, 0.5, 1.5, -1, float("nan"), ("a", "b")):
        results["acc"] = value
        with pytest.raises(ConfigError, match=r"needs a verdict for each answer.*; evaluate it in"):
            harness.score("text", {})


def test_a_metric_of_which_less_is_better_is_refused_before_anything_is_decoded(tasks, tmp_path):
    text = tasks["own_whole"].read_text()
    path = tasks["own_whole"].with_name("own_errors.yaml")
    changed = text.replace("higher_is_better: true", "higher_is_better: false")
    path.write_text(changed.replace("task: own_whole", "task: own_errors"))
    result = c4("record", "--task", f"lm-eval:{path}", "--out", tmp_path / "runs")
    assert result.exit_code == 2
    assert "lower is better for the metric acc" in " ".join(result.stderr.split())
    assert not (tmp_path / "runs").exists()
    path.unlink()


def test_an_expression_that_is_none_is_said(tasks, tmp_path):
    path = tmp_path / "open.yaml"
    path.write_text(tasks["own_letter"].read_text().replace("([A-D])", "([A-D]"))
    with pytest.raises(ConfigError, match="the filter first-letter of lm-eval:own_letter: "):
        find_harness_task(str(path))


def test_a_file_may_lie_at_home(tasks, monkeypatch):
    monkeypatch.setenv("HOME", str(tasks["own_letter"].parent))
    assert find_harness_task("~/own_letter.yaml").name == "lm-eval:own_letter"


def test_a_task_without_a_regular_expression_says_that_gates_watch_everything(tasks, caplog):
    say_once.cache_clear()
    assert find_lm_eval_task(str(tasks["own_whole"])).extract("so 12 Q: next").value == "so 12 "
    assert "gates watch the whole text" in caplog.text


def test_a_fallback_that_is_an_answer_is_one():
    regex = Regex("answer ([0-9])", 0, "0")
    extract = FilterExtractor("t", "f", "1", (), (), 1, (regex,))
    assert extract("answer 7").value == "7"
    assert extract("no idea").value == "0"
    assert FilterExtractor("t", "f", "1", (), (), 1, (Regex("x", 0, "[invalid]"),))("no") is None


class Index:
    """What the harness knows of some tasks, without the seconds that it takes to find out."""

    task_index: ClassVar = {
        name: SimpleNamespace(cfg=config, kind=SimpleNamespace(name="TASK"))
        for name, config in {
            "sum_text": {"dataset_path": "sums", "num_fewshot": 2},
            "sum_choice": {"output_type": "multiple_choice"},
            "sum_code": {"output_type": "generate_until", "unsafe_code": True},
            "sum_class": {"class": "Sums"},
            "other": {"filter_list": [{"name": "strict"}, {"name": "loose"}]},
        }.items()
    }
    all_subtasks: ClassVar = list(task_index)


@pytest.mark.parametrize(
    ("pattern", "listed"),
    [("zzz", []), ("sum", ["lm-eval:sum_text"]), ("*", ["lm-eval:other", "lm-eval:sum_text"])],
)
def test_only_what_can_be_recorded_is_listed(monkeypatch, pattern, listed):
    monkeypatch.setattr("c4.lm_eval._load.task_manager", Index)
    result = c4("tasks", "--lm-eval", pattern, "--json")
    assert [task["task"] for task in json.loads(result.stdout)] == listed
    assert "lm-eval:sum_choice" not in c4("tasks", "--lm-eval").stdout


def test_a_misspelt_task_and_one_of_likelihoods_are_answered_before_data_is_fetched(monkeypatch):
    monkeypatch.setattr("c4.lm_eval._load.task_manager", lambda **_: Index)
    for name, words in (("sum_txt", "did you mean sum_text"), ("sum_choice", "scores likelihoods")):
        result = c4("record", "--task", f"lm-eval:{name}")
        assert result.exit_code == 2
        assert words in result.stderr


PROGRAMS = [{"unsafe_code": True}, {"metric_list": [{"metric": "pass_at_k"}]}]
PROGRAMS += [{"metric_list": [{"metric": "code_eval"}]}, {"metric_list": [{"metric": "pass@1"}]}]


@pytest.mark.parametrize("config", PROGRAMS)
def test_tasks_that_run_programs_are_refused(config):
    assert "runs programs that the model wrote" in refusal(config)


@pytest.mark.parametrize("kind", ["loglikelihood", "multiple_choice"])
def test_tasks_that_score_likelihoods_are_refused_with_the_reason(tasks, tmp_path, kind):
    text = tasks["own_letter"].read_text().replace("generate_until", kind)
    path = tmp_path / "scored.yaml"
    path.write_text(text.replace("generation_kwargs", "#") + 'doc_to_choice: ["A", "B"]\n')
    result = c4("record", "--task", f"lm-eval:{path}", "--out", tmp_path / "runs")
    assert result.exit_code == 2
    assert "scores likelihoods" in result.stderr


def test_likelihoods_asked_of_the_model_are_refused():
    from lm_eval.api.instance import Instance

    request = Instance("loglikelihood", {}, ("a", "b"), 0, metadata=("piqa", 0, 1))
    with pytest.raises(ConfigError, match="piqa scores likelihoods"):
        C4LM().loglikelihood([request])


WRONG = {
    "did you mean method": {"metod": "c4"},
    "steps is a whole number, not 'few'": {"steps": "few"},
    "include=nowhere: no such file": {"include": "nowhere"},
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_argument_of_the_model_is_answered(words):
    with pytest.raises(ConfigError, match=words):
        C4LM(**WRONG[words])


PLACES = {"s3://bucket/runs": "s3://bucket/runs", "~/runs": "/home/me/runs", "2026": "2026"}


@pytest.mark.parametrize("place", PLACES)
def test_a_model_records_wherever_a_command_does(place, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert str(C4LM(record=place)._record) == PLACES[place]


SETTINGS = {"do_sample=True": {"do_sample": True}, "a temperature": {"temperature": 0.7}}
GREEDY = {"no sampling": {"do_sample": False, "temperature": 0.7}, "0": {"temperature": 0.0}}


@pytest.mark.parametrize("name", [*SETTINGS, *GREEDY])
def test_sampling_is_said_not_to_happen(name, caplog):
    say_once.cache_clear()
    warn_of_sampling(name, (SETTINGS | GREEDY)[name])
    assert ("c4 decodes greedily" in caplog.text) == (name in SETTINGS)


def test_a_file_that_is_not_there_is_said(tmp_path):
    result = c4("record", "--task", f"lm-eval:{tmp_path}/nothing.yaml")
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_importing_the_room_loads_nothing_and_its_doors_say_what_to_install():
    code = """
import sys
import c4.lm_eval
print({"torch", "lm_eval"} & sys.modules.keys())
sys.modules["lm_eval"] = None
for door in (lambda: c4.lm_eval.find_lm_eval_task("gsm8k"), lambda: c4.lm_eval.C4LM):
    try:
        door()
    except Exception as error:
        print(type(error).__name__, "pip install 'c4-dlm[lm-eval]'" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = ["set()", "ConfigError True", "ModuleNotFoundError True"]
    assert done.stdout.splitlines() == said, done.stderr


PATTERNS = [r"(-?[$0-9.,]{2,})|(-?[0-9]+)", r"#### (\-?[0-9\.\,]+)", r"[0-9]+", r"(\w)\s*(\d)?"]
texts = st.text(alphabet="12 a$.,#-\n", max_size=40)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("select", [0, -1])
@given(text=texts)
def test_what_is_located_is_what_the_filter_returns(pattern, select, text):
    from lm_eval.filters.extraction import RegexFilter

    regex = Regex(pattern, select, "[invalid]")
    (returned,) = RegexFilter(pattern, select).apply([[text]], [{}])[0]
    span = regex.locate(text)
    assert (text[slice(*span)] if span else "[invalid]") == returned


@given(text=texts, until=st.lists(st.text(alphabet="1a\n", max_size=2), max_size=3))
def test_a_text_is_cut_at_the_first_stop(text, until):
    cut = cut_at(text, until)
    assert text.startswith(cut)
    stops = [stop for stop in until if stop]
    assert not any(stop in cut for stop in stops)
    assert cut == text or any(text[len(cut) :].startswith(stop) for stop in stops)


def test_an_extractor_says_all_that_its_answers_depend_on():
    regex = Regex("a", 0, "")
    made = [FilterExtractor("t", "f", "1", ("x",), (stop,), 1, (regex,)) for stop in ("a", "b")]
    assert repr(made[0]) != repr(made[1])
