"""Which task a run has: built in, named by the user, or the YAML task that its manifest holds."""

import json
from dataclasses import replace

import pytest

from c4.errors import ConfigError, RunError
from c4.store.manifest import ASKED, ROWS_ASKED, run_folder, write_manifest
from c4.store.run_task import task_of_run
from c4.store.runs import find_recorded_task, find_recorded_tasks, open_run
from c4.tasks import TASKS, find_task
from tests.store.made import make_manifest

ROWS = [{"question": f"What is {i}+{i}?", "answer": 2 * i} for i in range(1, 5)]
SUMS = {"doc_to_text": "Q: {{question}}", "doc_to_target": "answer", "extractor": "number"}
PYTHON = """
from c4.tasks import Example, Task, answers
def read(row):
    return Example(row["q"], row["a"])
TASK = Task(name="tiny_sums", read=read, rows=[{"q": "one", "a": "1"}], **answers("number"))
"""
CONFIG = {"task": "lm-eval:x", "filter": "Regex([A-D])", "config_sha256": "0"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "my_task.py").write_text(PYTHON)
    return tmp_path


def yaml_task(fields=SUMS, name="my_task.yaml"):
    with open(name, "w") as file:
        json.dump({"data_files": "rows.jsonl", **fields}, file)  # JSON is YAML too
    return find_task(name)


def recorded(task, definition, rows=None):
    manifest = make_manifest(task=task, task_definition=definition)
    asked = {} if rows is None else {ASKED: {ROWS_ASKED: str(rows)}}
    return replace(manifest, environment={**manifest.environment, **asked})


def test_a_task_that_was_edited_since_is_refused(folder):
    before = find_task("my_task.py:TASK")
    manifest = recorded(before.name, before.definition)
    assert task_of_run(manifest, [before]) is before
    assert task_of_run(manifest) is None  # code is never loaded
    (folder / "my_task.py").write_text(PYTHON + "# edited")
    with pytest.raises(ConfigError, match="before the source of its task tiny_sums was edited"):
        task_of_run(manifest, [find_task("my_task.py:TASK")])


@pytest.mark.parametrize("field", ["filter", "config_sha256"])
def test_whatever_a_definition_holds_tells_that_a_task_was_edited(field):
    named = [replace(TASKS["gsm8k"], name="lm-eval:x", definition={**CONFIG, field: "other"})]
    with pytest.raises(ConfigError, match=rf"was edited \({field}: '.*' there, 'other' here\)"):
        task_of_run(recorded("lm-eval:x", CONFIG), named)
    asked = {"prompt": "p.txt", "prompt_sha256": "0"}  # another wording is graded alike
    assert task_of_run(recorded("lm-eval:x", {**CONFIG, field: "other", **asked}), named)


def test_an_evaluation_s_prompts_are_read_by_the_task_that_they_are_of():
    named = [replace(TASKS["gsm8k"], name="lm-eval:x+0", definition=CONFIG)]
    made = {"task": "lm-eval:x", "prompts": "0", "filter": CONFIG["filter"]}
    assert task_of_run(recorded("lm-eval:x+0", made), named) is named[0]
    with pytest.raises(ConfigError, match="was edited"):
        task_of_run(recorded("lm-eval:x+0", {**made, "filter": "Regex([Q-Z])"}), named)


def test_a_python_task_and_a_yaml_task_of_one_name_are_two():
    code, data = find_task("my_task.py:TASK"), yaml_task({**SUMS, "task": "tiny_sums"})
    for made, named in ((code, data), (data, code)):
        with pytest.raises(ConfigError, match="its task tiny_sums is another one than the task"):
            task_of_run(recorded("tiny_sums", made.definition), [named])
    with pytest.raises(ConfigError, match="its task gsm8k is not c4's own"):
        task_of_run(recorded("gsm8k", code.definition))


def test_two_tasks_of_one_name_cannot_be_asked_for_together(folder):
    yaml_task()
    yaml_task({**SUMS, "task": "my_task"}, "copy.yaml")  # it says the same
    assert find_recorded_tasks(["my_task.yaml", "copy.yaml"], folder)
    yaml_task({**SUMS, "task": "my_task", "doc_to_text": "Hm: {{question}}"}, "b.yaml")
    (folder / "deep").mkdir()  # with other rows beside it
    (folder / "deep" / "rows.jsonl").write_text(json.dumps(ROWS[0]))
    yaml_task({**SUMS, "task": "my_task"}, "deep/copy.yaml")
    for other in ("b.yaml", "deep/copy.yaml"):
        with pytest.raises(ConfigError, match=r"it and of my_task\.yaml would both go by my_task"):
            find_recorded_tasks(["my_task.yaml", other], folder)


def test_a_recording_tells_what_its_yaml_file_said(folder):
    definition = dict(yaml_task().definition)
    task = task_of_run(recorded("my_task", definition))
    assert task.extract is TASKS["gsm8k"].extract
    (folder / "mine.jsonl").write_text("{}")
    moved = task_of_run(recorded("my_task", definition, folder / "mine.jsonl"))
    assert moved.rows == folder / "mine.jsonl"
    fields = {**definition["fields"], "task": "lm-eval:x"}
    with pytest.raises(ConfigError, match="has a colon"):
        task_of_run(recorded("lm-eval:x", {"fields": fields}))


@pytest.mark.parametrize("named", ["popular", "gsm8k", "my_task ", None, ["my_task"]])
def test_a_recording_names_no_task_but_its_own(named):
    fields = {**yaml_task().definition["fields"], "task": named}
    for wrong in (fields, [["task", "my_task"]]):
        with pytest.raises(ConfigError, match="its task is my_task, but the definition it holds"):
            task_of_run(recorded("my_task", {"fields": wrong}))


def test_opening_a_run_remembers_no_task(folder):
    task, code = yaml_task(), find_task("my_task.py:TASK")
    runs = folder / "runs"
    places = [run_folder(runs, "m", made.name, "baseline") for made in (task, code)]
    for place, made in zip(places, (task, code), strict=True):
        write_manifest(place, recorded(made.name, made.definition))
    assert open_run(places[0]).task.name == "my_task"
    with pytest.raises(ConfigError, match="no task named 'my_task'"):
        find_task("my_task")
    assert find_recorded_task("my_task", runs).definition == task.definition
    with pytest.raises(RunError, match=r"name it as it was recorded: --task my_task\.py:TASK"):
        _ = open_run(places[1]).task
    assert open_run(places[1], tasks=[code]).task is code
    with pytest.raises(ConfigError, match=r"name it as it was recorded: --task my_task\.py:TASK"):
        find_recorded_task("tiny_sums", runs)
