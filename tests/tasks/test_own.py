"""Tasks of users' own: Python files, YAML files, and other wordings of c4's tasks."""

import json

import pytest

from c4 import templates
from c4.errors import C4Error, ConfigError, DataError
from c4.tasks import (
    TASKS,
    Example,
    Shape,
    Task,
    Verdict,
    answers,
    find_task,
    grade,
)
from c4.tasks.examples import default_source, load_samples
from c4.tasks.prompts import Template, with_prompt

ROWS = [
    {"question": f"What is {i}+{i}?", "answer": 2 * i, "options": ["no", "yes"], "right": 1}
    for i in range(1, 5)
]
SUMS = {"doc_to_text": "Q: {{question}}", "doc_to_target": "answer", "extractor": "number"}
LETTERS = {
    "doc_to_text": "{{question}} {{options|join(' or ')}}?",
    "doc_to_choice": "{{options}}",
    "doc_to_target": "{{right}}",
    "extractor": "letter",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of a user's own with some rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    return tmp_path


def write(folder, fields, name="my_task.yaml"):
    """A YAML file; JSON is YAML too."""
    (folder / name).write_text(json.dumps({"data_files": "rows.jsonl", **fields}))
    return name


def samples(task, **options):
    return load_samples(task, default_source(task, embedded=True), **options).samples


def test_a_yaml_file_is_a_task(folder):
    task = find_task(write(folder, SUMS))
    assert task.name == "my_task"
    assert {(s.example.prompt, s.example.target) for s in samples(task)} == {
        (f"Q: {row['question']}", str(row["answer"])) for row in ROWS
    }
    assert grade(task, samples(task)[0].example, "I think it is 99").verdict is Verdict.WRONG


def test_choices_make_letters(folder):
    (sample, *_) = samples(find_task(write(folder, LETTERS)))
    assert (sample.example.target, sample.example.choices) == ("B", ("no", "yes"))


@pytest.mark.parametrize("target", [1, "B", "b", "yes", "{{options[1]}}"])
def test_a_choice_is_given_by_its_number_letter_or_text(folder, target):
    task = find_task(write(folder, {**LETTERS, "doc_to_target": target}))
    assert samples(task)[0].example.target == "B"


def with_rows(folder, *rows):
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))


NUMERIC = ["1", "0", "3", "2"]


@pytest.mark.parametrize(
    ("options", "right", "target", "expected"),
    [
        (NUMERIC, 1, "right", "B"),
        (NUMERIC, 1, "{{right}}", "B"),
        (NUMERIC, 3, " {{right}}\n", "D"),
        (NUMERIC, 0, 2, "C"),
        (NUMERIC, "1", "{{right}}", "B"),  # digits that a template writes are a number
        (NUMERIC, "1", "right", "A"),  # and a field's text is a text
        (NUMERIC, "2", "right", "D"),
        (["no", "yes"], "1", "right", "B"),
        (["\u00b2", "\u00b3"], "\u00b3", "{{right}}", "B"),
    ],
)
def test_a_number_is_a_choice_s_place_and_not_its_text(folder, options, right, target, expected):
    with_rows(folder, {"question": "?", "options": options, "right": right})
    task = find_task(write(folder, {**LETTERS, "doc_to_target": target}))
    assert samples(task)[0].example.target == expected


@pytest.mark.parametrize(("right", "target"), [(20, "right"), (20, "{{right}}"), (-1, "right")])
def test_a_number_that_no_choice_has_is_refused(folder, right, target):
    with_rows(folder, {"question": "?", "options": ["10", "20"], "right": right})
    with pytest.raises(DataError, match=f"gives {right}, and choices are numbered from 0 to 1"):
        samples(find_task(write(folder, {**LETTERS, "doc_to_target": target})))


def test_the_number_of_a_choice_stands_for_its_text_where_answers_are_numbers(folder):
    with_rows(folder, {"question": "?", "options": ["12", "15"], "right": 1})
    task = find_task(write(folder, {**LETTERS, "extractor": "number"}))
    assert samples(task)[0].example.target == "15"


@pytest.mark.parametrize(
    "options",
    [
        [r"\frac{1}{2}", "two\nlines"],
        ["yes", "no", "1:30", "null", "010", "~"],
        ["it's", 'a "quoted" one', """both ' and " of them"""],
        ["a: b", "- c", "# d", "{e}", "[f]", "*g", "!h"],
        ["\u00e9", "\U0001f600", "tab\tin it"],
    ],
)
def test_choices_keep_their_wording(folder, options):
    with_rows(folder, {"question": "?", "options": options, "right": 1})
    (sample,) = samples(find_task(write(folder, LETTERS)))
    assert sample.example.choices == tuple(options)


def test_choices_written_in_the_file_keep_their_wording(folder):
    fields = "\n".join(f"{name}: {json.dumps(value)}" for name, value in LETTERS.items())
    written = "doc_to_choice: [yes, no, 1:30, 010, 1.10, 2020-01-01, 0x10, 7]"
    text = fields.replace('doc_to_choice: "{{options}}"', written)
    (folder / "plain.yaml").write_text(f"data_files: rows.jsonl\n{text}")
    choices = samples(find_task("plain.yaml"))[0].example.choices
    assert choices == ("yes", "no", "1:30", "010", "1.10", "2020-01-01", "0x10", "7")


@pytest.mark.parametrize(
    "choices",
    ["[yes, no]", "['a', {{question}}]", "yes or no", "[" * 500, "['a'", "\\", "[1+'a']"],
)
def test_a_text_that_is_no_list_of_choices_is_refused(folder, choices):
    with pytest.raises(C4Error, match=r"row .: doc_to_choice gives .* cannot be read as a list"):
        samples(find_task(write(folder, {**LETTERS, "doc_to_choice": choices})))


def test_rows_stand_beside_the_file_in_the_harness_s_own_way_too(folder):
    (folder / "deep").mkdir()
    (folder / "rows.jsonl").rename(folder / "deep" / "mine.jsonl")
    fields = {**SUMS, "dataset_path": "json", "test_split": "train", "data_files": None}
    fields["dataset_kwargs"] = {"data_files": {"train": "mine.jsonl"}}
    assert len(samples(find_task(write(folder, fields, "deep/sums.yaml")))) == len(ROWS)


def test_a_hub_data_set_is_named_as_in_the_harness(folder):
    fields = {**SUMS, "data_files": None, "dataset_path": "openai/gsm8k", "dataset_name": "main"}
    task = find_task(write(folder, {**fields, "test_split": "test"}))
    assert (task.hub.dataset, task.hub.config, task.hub.split) == ("openai/gsm8k", "main", "test")
    assert default_source(task, embedded=True) == "hub"


def test_a_file_is_the_one_of_the_split(folder):
    (folder / "rows.jsonl").rename(folder / "test.jsonl")
    files = {"train": "train.jsonl", "test": "test.jsonl"}
    for split in ("split", "test_split", "validation_split"):
        task = find_task(write(folder, {**SUMS, "data_files": files, split: "test"}))
        assert len(samples(task)) == len(ROWS)
    only = {"data_files": {"test": "test.jsonl"}, "dataset_kwargs": {"trust_remote_code": False}}
    assert len(samples(find_task(write(folder, {**SUMS, **only})))) == len(ROWS)


def test_a_revision_of_a_hub_data_set_is_the_one_that_is_read(folder, monkeypatch):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list(ROWS)
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **kw: asked.append(kw) or rows)
    hub = {"data_files": None, "dataset_path": "me/sums", "test_split": "test"}
    for kwargs in ({"revision": "v1"}, {"revision": None}):
        samples(find_task(write(folder, {**SUMS, **hub, "dataset_kwargs": kwargs})))
    assert asked == [{"split": "test", "revision": "v1"}, {"split": "test"}]


@pytest.mark.parametrize("target", ["anwser", "Answer", "answer\n"])
def test_a_word_that_is_no_field_is_not_taken_for_the_gold_answer(folder, target):
    with pytest.raises(C4Error, match=r"doc_to_target: the row has no field .*; did you mean answ"):
        samples(find_task(write(folder, {**SUMS, "doc_to_target": target})))


def test_a_prompt_of_one_word_is_a_field_s_and_other_texts_stand_for_themselves(folder):
    with pytest.raises(C4Error, match=r"doc_to_text: the row has no field 'prompt'; there are qu"):
        samples(find_task(write(folder, {**SUMS, "doc_to_text": "prompt"})))
    for text in ("Say it.", "{{'prompt'}}", "a-b", "12"):
        task = find_task(write(folder, {**SUMS, "doc_to_text": text}))
        assert {s.example.prompt for s in samples(task)} == {text.strip("{}'")}


FILES = {"train": "a.jsonl", "validation": "b.jsonl"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data_files": FILES, "test_split": "test"}, "no split test; there are train, validation"),
        ({"data_files": FILES}, "choose with split: one of train, validation"),
        ({"split": "train[:10]"}, "split train[:10]: a file is read whole; give n and skip"),
        ({"dataset_kwargs": {"data_dir": "x"}}, "data_dir would be ignored; there are data_files"),
        ({"dataset_kwargs": "x"}, "dataset_kwargs has names with values"),
        ({"dataset_kwargs": {"trust_remote_code": True}}, "code of a data set is never run"),
        ({"dataset_kwargs": {"revision": "v1"}}, "a revision is of a data set on the hub"),
        ({"dataset_kwargs": {"data_files": "b.jsonl"}}, "name several files"),
        ({"dataset_path": "openai/gsm8k"}, "dataset_path openai/gsm8k would be ignored"),
        ({"task": "lm-eval:gsm8k"}, "'lm-eval:gsm8k' has a colon, as tasks of other programs"),
        ({"doc_to_txt": "x"}, "no field 'doc_to_txt'; did you mean doc_to_text"),
        ({"extractor": "numbr"}, "no extractor named 'numbr'; did you mean number?"),
        ({"extractor": "my_module:find"}, "no extractor named 'my_module:find'"),
        ({"doc_to_text": "{{question"}, "doc_to_text: not a Jinja template"),
        ({"doc_to_text": None}, "doc_to_text"),
        ({"doc_to_text": 5}, "doc_to_text is the name of a field, or a Jinja template"),
        ({"doc_to_text": "{% include 'rows.jsonl' %}"}, "a template stands alone"),
        ({"search": "middle"}, "search is one of last, first5, code, not 'middle'"),
        ({"shape": {"length": 10}}, "shape needs whole numbers for length, steps and block_length"),
        ({"shape": {"length": 10, "block_length": 3}}, "10 is not a multiple of block length 3"),
        ({"output_type": "multiple_choice"}, "scores likelihoods"),
        ({"num_fewshot": 5}, "num_fewshot: write the examples into doc_to_text"),
        ({"filter_list": []}, "filter_list: name one of c4's extractors"),
        ({"generation_kwargs": {}}, "a decode has a fixed length"),
        ({"n": 0}, "n is a whole number from 1 on, not 0"),
        ({"task": "gsm8k"}, "the task gsm8k would pass for c4's own"),
        ({"task": "../gsm8k"}, "cannot be a task's name"),
        ({"extractor": "function"}, "it lacks doc_to_tests"),
        ({"data_files": None}, "where are its rows?"),
        ({"data_files": ["a", "b"]}, "data_files names one file"),
    ],
)
def test_a_mistake_in_a_file_is_named(folder, fields, message):
    with pytest.raises(C4Error) as refused:
        samples(find_task(write(folder, {**SUMS, **fields})))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("doc_to_text: !function utils.f", "line 1: !function names code to be run"),
        ("doc_to_text: !!python/object/apply:os.system [ls]", "not valid YAML"),
        ("a: [", "not valid YAML"),
        ("- a", "a task is a list of fields"),
        ("\x00", "not valid YAML"),
        ("a: &x [1]\nb: *x", "line 2: *x is an alias; write out what it stands for"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "line 3: *x is an alias"),
        ("a: &x [*x]", "line 1: *x is an alias"),
    ],
)
def test_a_yaml_file_runs_no_code(folder, text, message):
    (folder / "bad.yaml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        find_task("bad.yaml")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{question.__class__.__mro__}}",
        "{{''.__class__}}{{cycler.__init__.__globals__}}",
        "{{9**999999}}",
        "{{no_such_field}}",
        "{{self.question}}",
        "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
        "{% for i in [1] %}" * 30 + "{% endfor %}" * 30,
    ],
)
def test_a_template_is_kept_in_its_sandbox(folder, template):
    with pytest.raises(C4Error, match="doc_to_text"):
        samples(find_task(write(folder, {**SUMS, "doc_to_text": template})))


OUTGROWN = {
    "a wide format": "{{'%100000000d' % 1}}",
    "replacements": "{{('a' * 50000).replace('a', 'b' * 50000)}}",
    "doubling in a loop": "{% set n = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set n.x = n.x ~ n.x %}{% endfor %}{{n.x|length}}",
    "nested loops": "{% for i in range(9**5) %}" * 2 + "{% endfor %}" * 2,
    "endless recursion": "{% macro m() %}{{m()}}{% endmacro %}{{m()}}",
}


@pytest.mark.parametrize("template", OUTGROWN.values(), ids=OUTGROWN)
def test_a_template_that_would_take_all_memory_or_never_end_is_refused(template, monkeypatch):
    monkeypatch.setattr(templates, "CPU_SECONDS", 0.3)
    with pytest.raises(ConfigError, match="prompt: it takes more than 2 seconds, 1 GB of memory"):
        Template(template, "prompt").render({})
    assert Template("{{a}}", "prompt").render({"a": 1}) == "1"  # the next one is not held up


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for o in options %}{{loop.index}}/{{loop.length}} {{o}};{% endfor %}", "1/2 a;2/2 b;"),
        ("{{'%05.1f' % 2.25}} {{'{:>4}'.format(7)}} {{'%s'|format(7)}}", "002.2    7 7"),
        ("{{passage|length}} {{passage[:3]|upper}}", "200000 WOR"),
        ("{{passage.replace('word ', 'w')|length}} {{passage.split()|length}}", "40000 40000"),
        ("{{'a'|center(5)}}|{{'a\nb'|indent(2)}}", "  a  |a\n  b"),
        ("{{options|map('upper')|join(', ')}} {{none_here|default('-')}}", "A, B -"),
        (
            "{{options|tojson}} {{1 in [1, 2]}} {{2 * 3 ** 2}} {{'ab' * 2}}",
            '["a", "b"] True 18 abab',
        ),
        ("{{options|map('upper')}} {{(options|map('upper'))[0]}}", "['A', 'B'] A"),
        ("{% macro m(x) %}<{{x}}>{% endmacro %}{{m('a') ~ m(1)}}", "<a><1>"),
        (
            "{% set n = namespace(x=0) %}{% for o in options %}{% set n.x = n.x + 1 %}{% endfor %}"
            "{{n.x}}",
            "2",
        ),
    ],
)
def test_what_prompts_need_is_rendered(template, text):
    row = {"options": ["a", "b"], "passage": "word " * 40000}
    assert Template(template, "prompt").render(row) == text


@pytest.mark.parametrize("name", ["context", "environment", "args", "kwargs", "loop", "row"])
def test_a_field_may_have_any_name(name):
    assert Template(f"{{{{{name}}}}} {{{{q}}}}", "prompt").render({name: 1, "q": 2}) == "1 2"
    assert Template("{{q}}", "prompt").render({name: 1, "q": 2}) == "2"


def test_a_shape_in_the_file_is_fixed(folder):
    shape = {"length": 32, "steps": 16, "block_length": 8}
    task = find_task(write(folder, {**SUMS, "shape": shape}))
    assert (task.shape, task.fixed_shape) == (Shape(length=32, budget=16, block_length=8), True)
    assert not find_task(write(folder, SUMS)).fixed_shape


PYTHON = """
from c4.tasks import Example, Task, answers
ROWS = [{"q": "one", "a": "1"}, {"q": "two", "a": "2"}]
def read(row):
    return Example(row["q"], row["a"])
TASK = Task(name="tiny_sums", read=read, rows=ROWS, **answers("number"))
NOT = 3
"""


def test_a_python_file_is_a_task_with_rows_of_its_own(folder):
    (folder / "my_task.py").write_text(PYTHON)
    task = find_task("my_task.py:TASK")
    loaded = load_samples(task, default_source(task, embedded=True))
    assert sorted(s.example.prompt for s in loaded.samples) == ["one", "two"]
    assert loaded.origin.startswith("task:tiny_sums@")
    before = task.definition
    (folder / "my_task.py").write_text(PYTHON + "# edited")
    assert find_task("my_task.py:TASK").definition != before
    with pytest.raises(ConfigError, match="is no task"):
        find_task("my_task.py:NOT")


def test_an_identity_holds_no_folders(folder):
    (folder / "rows.jsonl").rename(folder / "mine.jsonl")
    place = str(folder / "mine.jsonl")
    ways = [
        {"data_files": place},
        {"data_files": {"test": [place]}},
        {"data_files": None, "dataset_kwargs": {"data_files": {"test": place}}},
        {"data_files": None, "dataset_path": place},
    ]
    for number, way in enumerate(ways):
        task = find_task(write(folder, {**SUMS, "split": "test", **way}, f"t{number}.yaml"))
        assert len(samples(task)) == len(ROWS)
        assert "mine.jsonl" in json.dumps(task.definition)
        assert str(folder) not in json.dumps(task.definition)


def test_a_copy_of_a_hub_s_folder_is_named_without_its_folders(folder):
    datasets = pytest.importorskip("datasets")
    copy = folder / "deep" / "copy"
    copy.mkdir(parents=True)
    datasets.Dataset.from_list(ROWS).to_parquet(copy / "train-0.parquet")
    hub = {"data_files": None, "dataset_path": str(copy), "split": "train"}
    task = find_task(write(folder, {**SUMS, **hub}))
    found = load_samples(task, "hub")
    assert len(found.samples) == len(ROWS)
    assert task.definition["fields"]["dataset_path"] == "./copy"
    assert found.origin.startswith("hub:./copy/default/train@")


def test_a_judge_grades_what_forms_cannot_tell():
    def near(example, answer, text):
        return abs(float(answer) - float(example.target)) < 0.5

    task = Task(name="near", read=lambda row: None, judge=near, **answers("number"))
    example = Example("?", "3")
    assert grade(task, example, "it is 3.2").verdict is Verdict.RIGHT
    assert grade(task, example, "it is 4").verdict is Verdict.WRONG
    assert not task.grades_by_form
    with pytest.raises(ConfigError, match="the judge of near fails: ValueError"):
        grade(task, Example("?", "three"), "it is 3")


def test_a_prompt_replaces_the_wording_of_any_task(folder):
    (folder / "p.txt").write_text(
        "{{question}} Choose from {{choices|join(', ')}}. Was: {{prompt}}\n"
    )
    plain = TASKS["mmlu"]
    task = with_prompt(plain, "p.txt")
    before, after = (load_samples(t, "embedded", n=1).samples[0].example for t in (plain, task))
    first = before.prompt.partition("\n")[0]
    wording = f"{first} Choose from {', '.join(before.choices)}. Was: {before.prompt}"
    assert after.prompt == wording
    assert (after.target, after.choices) == (before.target, before.choices)
    assert task.definition.keys() == {"prompt", "prompt_sha256"}
    assert task.is_own


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "this prompt is empty"), ("{{quest}}", "did you mean question?"), ("{% if", "Jinja")],
)
def test_a_prompt_that_cannot_be_meant_is_refused(folder, text, message):
    (folder / "p.txt").write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_samples(with_prompt(TASKS["mmlu"], "p.txt"), "embedded", n=1)
    assert message in str(refused.value)


def test_own_files_set_no_examples_aside(folder):
    row = {"question": "What is 1+1?", "answer": "#### 2"}
    (folder / "gsm.jsonl").write_text(json.dumps(row))
    assert [s.index for s in load_samples(TASKS["gsm8k"], "gsm.jsonl").samples] == [0]
    assert load_samples(TASKS["gsm8k"], "embedded", n=1).samples[0].index == 40


def test_there_are_no_embedded_problems_of_a_user_s_task(folder):
    with pytest.raises(DataError, match="there are no embedded problems for my_task"):
        load_samples(find_task(write(folder, SUMS)), "embedded")


def test_a_python_task_s_file_of_rows_stands_beside_it(folder, monkeypatch):
    (folder / "beside.py").write_text(
        "from c4.tasks import Example, Task, answers\n"
        "def read(row):\n"
        "    return Example(row['question'], str(row['answer']))\n"
        "def rows():\n"
        "    yield {'question': '1 + 1?', 'answer': 2}\n"
        "FILED = Task(name='filed', read=read, rows='rows.jsonl', **answers('number'))\n"
        "MADE = Task(name='made', read=read, rows=rows, **answers('number'))\n"
    )
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert len(samples(find_task(f"{folder}/beside.py:FILED"))) == len(ROWS)
    assert samples(find_task("../beside.py:MADE"))[0].example.target == "2"


def test_a_row_without_fields_is_refused(folder):
    (folder / "rows.jsonl").write_text("5")
    with pytest.raises(DataError, match="row 0: it is 5, and no fields with names"):
        samples(find_task(write(folder, SUMS)))


@pytest.mark.parametrize("found", [None, "no", 0.5])
def test_a_judge_that_says_neither_true_nor_false_is_refused(found):
    task = Task(name="odd", read=lambda row: None, judge=lambda *seen: found, **answers("number"))
    with pytest.raises(ConfigError, match=f"the judge of odd returns {found!r}; return True or"):
        grade(task, Example("?", "3"), "it is 3")
