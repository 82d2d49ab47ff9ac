"""Tasks in the styles of the harness's own folder, over problems that the embedded model knows."""

import json
from pathlib import Path

from c4.tasks import TASKS, load_samples

HEAD = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files: {{train: "{folder}/{data}-train.jsonl", test: "{folder}/{data}-test.jsonl"}}
test_split: test
"""
TEXT = 'doc_to_text: "{{q}}"\n'
TARGET = 'doc_to_target: "{{a}}"\n'
SHORT = 'generation_kwargs: {until: ["</s>"], max_gen_toks: 16}\n'
EXACT = "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
ASKS = TEXT + TARGET + SHORT
LAST = r'{function: regex, group_select: -1, regex_pattern: "(-?[0-9]+)"}'
LETTER = r'{function: regex, regex_pattern: "\\b([A-D])\\b"}'
TAKE = "{function: take_first}"


def filters(*steps: str, name: str = "only") -> str:
    """A task's list of filters with one pipeline."""
    return f"filter_list:\n  - name: {name}\n    filter:\n" + "".join(
        f"      - {s}\n" for s in steps
    )


def letters(*steps: str, rest: str = EXACT) -> tuple[str, str]:
    """A task about letters with some filters."""
    return "letters", ASKS + filters(*steps) + rest


def numbers(*steps: str, rest: str = EXACT) -> tuple[str, str]:
    """A task about numbers with some filters."""
    return "numbers", ASKS + filters(*steps) + rest


SECOND = r'{function: regex, group_select: 1, regex_pattern: "([A-D]|\\w|$)"}'
GROUPS = r'{function: regex, group_select: -1, regex_pattern: "is (\\d+)|(\\d+)()"}'
SHOTS = ASKS + filters(LAST, TAKE) + EXACT
VOTED = "repeats: 3\n"
SPLIT = "num_fewshot: 1\nfewshot_split: train\n"
SAMPLES = """\
num_fewshot: 2
fewshot_config:
  sampler: first_n
  samples: [{q: "Q: 1 + 1?\\nA:", a: "2"}, {q: "Q: 2 + 2?\\nA:", a: "4"}]
"""
TWO = """\
filter_list:
  - name: strict-match
    filter: [{function: regex, regex_pattern: "answer is (-?[0-9.,]+)"}, {function: take_first}]
  - name: flexible-extract
    filter:
      - {function: regex, group_select: -1, regex_pattern: "(-?[0-9]+)"}
      - {function: take_first}
"""
LOOSE = """\
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true, ignore_case: true,
     ignore_punctuation: true, regexes_to_ignore: [" ", "[b-z]"]}
"""
SEVERAL = """\
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
  - {metric: bleu, aggregation: bleu, higher_is_better: true}
  - {metric: chrf, aggregation: chrf, higher_is_better: true}
"""
OWN = """\
process_results: !function own.contains
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: length, aggregation: mean, higher_is_better: true}
"""
OWN_METRIC = """\
metric_list:
  - {metric: !function own.same, aggregation: mean, higher_is_better: true}
"""
LISTS = r'doc_to_target: "{{[a, a + \".\", a|string|length|string]}}"' + "\n"
CHOICE = "doc_to_choice: [A, B, C, D]\ndoc_to_target: !function own.number\n"
ARGUED = TARGET + SHORT + filters(LAST, TAKE) + EXACT

STYLES: dict[str, tuple[str, str]] = {
    "regex_first": letters(LETTER, TAKE),
    "regex_last": numbers(LAST, TAKE),
    "regex_second": letters(SECOND, TAKE),
    "regex_groups": numbers(GROUPS, TAKE),
    "regex_whole_match": numbers('{function: regex, regex_pattern: "[0-9]+"}', TAKE),
    "regex_fallback": numbers('{function: regex, regex_pattern: "so (7)", fallback: "0"}', TAKE),
    "lowercase": letters(LETTER, "{function: lowercase}", TAKE),
    "uppercase": letters(LETTER, "{function: uppercase}", TAKE),
    "lowercase_first": letters(
        "{function: lowercase}",
        r'{function: regex, regex_pattern: "([a-d])"}',
        "{function: uppercase}",
        TAKE,
    ),
    "map": letters(
        LETTER, '{function: map, mapping_dict: {A: "A", B: "A"}, default_value: "C"}', TAKE
    ),
    "map_after_take_first": letters(
        LETTER, TAKE, '{function: map, mapping_dict: {A: "A", B: "B"}, default_value: "C"}', TAKE
    ),
    "whitespace": letters("{function: remove_whitespace}", TAKE),
    "regex_of_regex": numbers(
        r'{function: regex, regex_pattern: "((?:.|\\s)*)"}',
        "{function: remove_whitespace}",
        LAST,
        TAKE,
    ),
    "regex_pos": ("letters", ASKS + filters("{function: regex_pos}") + OWN),
    "multi_choice_regex": letters(
        r'{function: multi_choice_regex, regex_pattern: "\\b([A-D])\\b", ignore_case: true}', TAKE
    ),
    "custom_filter": (
        "letters",
        ASKS + filters("{function: custom, filter_fn: !function own.last}") + EXACT,
    ),
    "filter_class": letters("{function: !function own.FirstWord}", TAKE),
    "majority_vote": (
        "numbers",
        VOTED + ASKS + filters(LAST, "{function: majority_vote}", TAKE) + EXACT,
    ),
    "take_first_k": (
        "numbers",
        VOTED
        + ASKS
        + filters("{function: take_first_k, k: 2}", LAST, "{function: majority_vote}", TAKE)
        + EXACT,
    ),
    "two_filters": ("numbers", ASKS + TWO + EXACT),
    "no_filter": ("letters", ASKS + EXACT),
    "no_metric": ("letters", ASKS + filters(LETTER, TAKE)),
    "bare": ("letters", TEXT + TARGET),
    "own_results": ("numbers", ASKS + OWN),
    "own_metric": ("numbers", ASKS + filters(LAST, TAKE) + OWN_METRIC),
    "loose_match": ("letters", ASKS + LOOSE),
    "several_metrics": ("numbers", ASKS + filters(LAST, TAKE) + SEVERAL),
    "target_field": ("numbers", TEXT + "doc_to_target: a\n" + SHORT + filters(LAST, TAKE) + EXACT),
    "target_number": ("numbers", TEXT + "doc_to_target: n\n" + SHORT + filters(LAST, TAKE) + EXACT),
    "target_list": ("numbers", TEXT + LISTS + SHORT + filters(LAST, TAKE) + EXACT),
    "target_list_field": (
        "numbers",
        TEXT + "doc_to_target: all\n" + SHORT + filters(LAST, TAKE) + EXACT,
    ),
    "target_choice": ("letters", TEXT + CHOICE + SHORT + filters(LETTER, TAKE) + EXACT),
    "process_docs": ("numbers", "process_docs: !function own.shuffled\n" + SHOTS),
    "fewshot_split": ("numbers", "num_fewshot: 2\nfewshot_split: train\n" + SHOTS),
    "fewshot_training": ("numbers", "num_fewshot: 2\ntraining_split: train\n" + SHOTS),
    "fewshot_test": ("numbers", "num_fewshot: 1\nfewshot_split: test\n" + SHOTS),
    "fewshot_first_n": (
        "numbers",
        "num_fewshot: 1\nfewshot_split: train\nfewshot_config: {sampler: first_n}\n" + SHOTS,
    ),
    "fewshot_samples": ("numbers", SAMPLES + SHOTS),
    "description": ("numbers", 'description: "Solve it.\\n\\n"\n' + SHOTS),
    "delimiters": (
        "numbers",
        'target_delimiter: " => "\nfewshot_delimiter: "\\n--\\n"\n' + SPLIT + SHOTS,
    ),
    "gen_prefix": ("numbers", 'gen_prefix: "The answer is"\n' + SHOTS),
    "text_function": ("numbers", "doc_to_text: !function own.ask\n" + ARGUED),
    "random_text": ("numbers", "doc_to_text: !function own.ask_at_random\n" + ARGUED),
    "until_cuts": (
        "numbers",
        TEXT
        + TARGET
        + 'generation_kwargs: {until: ["is", "="], max_gen_toks: 32}\n'
        + filters(LAST, TAKE)
        + EXACT,
    ),
    "until_word": (
        "numbers",
        TEXT + TARGET + 'generation_kwargs: {until: "the"}\n' + filters(LAST, TAKE) + EXACT,
    ),
    "no_until": (
        "numbers",
        TEXT + TARGET + "generation_kwargs: {max_gen_toks: 40}\n" + filters(LAST, TAKE) + EXACT,
    ),
    "sampling": (
        "numbers",
        TEXT
        + TARGET
        + 'generation_kwargs: {until: ["</s>"], do_sample: true, temperature: 0.7}\n'
        + filters(LAST, TAKE)
        + EXACT,
    ),
    "included": ("numbers", "include: base.yaml\n" + filters(LAST, TAKE) + EXACT),
    "python_class": ("numbers", "class: !function own.Asking\n"),
}
CODE = """\
import random

from lm_eval.api.filter import Filter
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask


def contains(doc, results):
    return {"length": len(results[0]), "acc": float(str(doc["a"]) in results[0])}


def same(references, predictions, **_):
    return float(references[0] == predictions[0])


def number(doc):
    return "ABCD".index(doc["a"])


def ask(doc):
    return doc["q"]


def ask_at_random(doc):
    return random.choice(["", "Think. ", "Please. ", "Now: "]) + doc["q"]


def shuffled(dataset):
    return dataset.shuffle(seed=3).map(lambda doc: {"q": doc["q"].strip()})


def last(resps, docs):
    return [resp[0].strip()[-1:] for resp in resps]


class FirstWord(Filter):
    def apply(self, resps, docs):
        return [[(resp.split() or ["?"])[0] for resp in inst] for inst in resps]


class Asking(ConfigurableTask):
    VERSION = 0

    def __init__(self, config=None):
        known = {"task", "dataset_path", "dataset_kwargs", "test_split", "metadata"}
        config = {key: value for key, value in config.items() if key in known}
        config["doc_to_text"], config["doc_to_target"] = "{{q}}", "{{a}}"
        super().__init__(config=config)

    def construct_requests(self, doc, ctx, **kwargs):
        kwargs.pop("apply_chat_template", False)
        kwargs.pop("chat_template", False)
        asked = (ctx, {"until": ["is"], "max_gen_toks": 16})
        return Instance("generate_until", doc, asked, 0, **kwargs)

    def process_results(self, doc, results):
        return {"has_digits": any(letter.isdigit() for letter in results[0])}

    def aggregation(self):
        return {"has_digits": lambda items: sum(items) / len(items)}

    def higher_is_better(self):
        return {"has_digits": True}
"""


def save_styles(folder: Path, n: int = 2) -> dict[str, Path]:
    """Write the tasks and their data; returns their files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for data, task in (("numbers", "svamp"), ("letters", "piqa")):
        samples = load_samples(TASKS[task], "embedded", skip=0, n=2 * n).samples
        rows = [_row(s.example.prompt, s.example.target) for s in samples]
        for split, some in (("test", rows[:n]), ("train", rows[n:])):
            text = "".join(f"{json.dumps(row)}\n" for row in some)
            (folder / f"{data}-{split}.jsonl").write_text(text)
    (folder / "own.py").write_text(CODE)
    (folder / "base.yaml").write_text(TEXT + TARGET + SHORT)
    files = {}
    for name, (data, body) in STYLES.items():
        files[name] = folder / f"style_{name}.yaml"
        head = HEAD.format(name=f"style_{name}", folder=folder, data=data)
        files[name].write_text(head + body)
    return files


def _row(question: str, answer: str) -> dict[str, object]:
    number = int(answer) if answer.lstrip("-").isdigit() else 0
    choices = ["red", "blue", "green", "white"]
    return {"q": question, "a": answer, "n": number, "all": [answer, "0"], "choices": choices}
