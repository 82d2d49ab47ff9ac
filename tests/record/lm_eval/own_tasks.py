"""Four tasks of a user's own for the harness, one of each kind, over problems the model knows."""

import json
from pathlib import Path

from c4.tasks import TASKS, load_samples

HEAD = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files: {{train: "{folder}/{data}-train.jsonl", test: "{folder}/{data}-test.jsonl"}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{a}}}}"
"""
NUMBER = r"""
num_fewshot: 0
generation_kwargs: {until: ["\n\nQ:"], max_gen_toks: 64}
filter_list:
  - name: flexible-extract
    filter:
      - {function: regex, group_select: -1, regex_pattern: "(-?[$0-9.,]{2,})|(-?[0-9]+)"}
      - {function: take_first}
metric_list:
  - {metric: exact_match, aggregation: mean, regexes_to_ignore: [",", "\\.$"]}
"""
LETTER = r"""
num_fewshot: 0
generation_kwargs: {until: ["</s>"], max_gen_toks: 16}
filter_list:
  - name: first-letter
    filter:
      - {function: regex, regex_pattern: "\\b([A-D])\\b"}
      - {function: take_first}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true, ignore_case: true}
"""
WHOLE = """
num_fewshot: 0
generation_kwargs: {until: ["Q:"]}
process_results: !function own_metric.contains
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
"""
SHOTS = r"""
num_fewshot: 1
fewshot_split: train
generation_kwargs: {until: ["\n"], max_gen_toks: 64}
filter_list:
  - name: strict-match
    filter:
      - {function: regex, regex_pattern: "answer is (-?[0-9.,]+)"}
      - {function: take_first}
  - name: any-number
    filter:
      - {function: regex, group_select: -1, regex_pattern: "-?[0-9]+"}
      - {function: take_first}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
KINDS = {
    "own_number": ("numbers", NUMBER),
    "own_letter": ("letters", LETTER),
    "own_whole": ("numbers", WHOLE),
    "own_shots": ("numbers", SHOTS),
}
METRIC = """\
def contains(doc, results):
    return {"acc": float(str(doc["a"]) in results[0])}
"""


def save_tasks(folder: Path, n: int = 3) -> dict[str, Path]:
    """Write the four tasks and their data; returns their files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for data, task in (("numbers", "svamp"), ("letters", "piqa")):
        samples = load_samples(TASKS[task], "embedded", skip=0, n=2 * n).samples
        rows = [{"q": s.example.prompt, "a": s.example.target} for s in samples]
        for split, some in (("test", rows[:n]), ("train", rows[n:])):
            text = "".join(f"{json.dumps(row)}\n" for row in some)
            (folder / f"{data}-{split}.jsonl").write_text(text)
    (folder / "own_metric.py").write_text(METRIC)
    files = {}
    for name, (data, body) in KINDS.items():
        files[name] = folder / f"{name}.yaml"
        files[name].write_text(HEAD.format(name=name, folder=folder, data=data) + body)
    return files
