"""Runs to and from the hub, by the hub's own client against a server on this machine."""

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import yaml

from c4.analysis.exchange.card import make_card
from c4.store import find_runs, open_run
from c4.store.check import State, check_run
from c4.store.manifest import read_manifest, write_manifest
from c4.store.storage import read_file
from tests.analysis.exchange.standin import standing_in
from tests.commands import c4, done, refused
from tests.store.made import write_anew

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the client's
DATA = Path(__file__).parents[2] / "data" / "runs" / "v3"
FULL = "model=tiny/task=mmlu/method=baseline"
REPO = "somebody/letters"


@pytest.fixture
def runs(tmp_path):
    return shutil.copytree(DATA, tmp_path / "runs")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty hub, and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    with standing_in(monkeypatch, tmp_path / "cache") as hub:
        yield hub


def content(folder):
    """Everything that a run says."""
    run = open_run(folder)
    cells = [cells.token.tolist() for _, cells in run.cells()] if run.has_cells else None
    return run.manifest.identity, [row.to_json() for row in run.rows()], cells


def test_a_run_that_is_pushed_and_pulled_is_the_same(hub, runs, tmp_path):
    pushed = done("push", runs, REPO, "--json")
    assert json.loads(pushed.stdout)["files"] == hub.committed - 1  # and the card
    done("pull", REPO, "--out", "elsewhere")
    found = find_runs(tmp_path / "elsewhere")
    assert len(found) == 2
    for folder in found:
        assert content(folder) == content(runs / folder.relative_to(tmp_path / "elsewhere"))
        assert {finding.state for finding in check_run(folder)} == {State.SOUND}
    here, there = (done("replay", "--runs", place, "--json") for place in (runs, "elsewhere"))
    assert here.stdout == there.stdout
    again = done("pull", REPO, "--out", "elsewhere", "--json")
    assert {(one["added"], one["known"]) for one in json.loads(again.stdout)} == {(0, 3)}


def test_the_folders_of_a_user_stay_at_home(hub, runs):
    manifest = read_manifest(runs / FULL)
    asked = {"asked": {"task": "/home/ann/secret.py:TASK"}}
    write_manifest(runs / FULL, replace(manifest, environment={**manifest.environment, **asked}))
    done("push", runs / FULL, REPO)
    done("pull", REPO, "--out", "elsewhere")
    (pulled,) = find_runs("elsewhere")
    assert read_manifest(pulled) == manifest
    assert read_manifest(runs / FULL).asked == asked["asked"]


def test_a_cache_of_signals_and_others_files_stay_at_home(hub, runs):
    (runs / FULL / "notes.txt").write_text("mine")
    done("replay", "--runs", runs, "--gate", "cvee")
    assert (runs / FULL / "signals").is_dir()
    done("push", runs / FULL, REPO)
    _, files = hub.files(REPO)
    assert sorted({Path(name).parent.name for name in files}) == [
        "",
        "cells",
        "method=baseline",
        "rows",
    ]
    assert not [name for name in files if "signals" in name or "notes" in name]


def test_the_card_tells_what_was_recorded_and_how_to_replay(hub, runs):
    done("push", runs / FULL, REPO)
    done("push", runs / "model=tiny/task=mmlu/method=c4", REPO)
    _, files = hub.files(REPO)
    card = files["README.md"].decode()
    head = yaml.safe_load(card.split("---\n")[1])
    assert [config["config_name"] for config in head["configs"]] == ["rows", "cells"]
    assert card.count(f"| `runs/{FULL}` |") == 2  # of an earlier push, and still told
    assert "| `runs/model=tiny/task=mmlu/method=c4` |" in card
    assert "c4 pull somebody/letters" in card
    assert "c4 replay --task mmlu" in card
    for column in ("confidence", "committed_by", "verdict"):
        assert f"| `{column}` |" in card


def test_runs_go_to_the_hub_from_a_store_and_come_back_into_one(hub, runs, bucket, tmp_path):
    done("runs", "--merge", runs, "--runs", bucket / "runs")
    done("push", bucket / "runs", REPO)
    done("pull", REPO, "--out", bucket / "pulled")
    assert content(bucket / "pulled" / FULL) == content(runs / FULL)
    out = bucket / "steps.jsonl"
    done("export", bucket / "pulled" / FULL, "--out", out)
    assert len(read_file(out).splitlines()) == 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("s3")]


def test_large_files_go_ahead_of_the_commit_and_are_not_sent_twice(hub, runs, tmp_path):
    hub.part_size = 5_000
    done("push", runs / FULL, REPO, "--private")
    assert hub.private[REPO]
    assert {part for _, part in hub.uploads} >= {"1", "2"}
    sent = len(hub.uploads)
    done("push", runs / FULL, "somebody/elsewhere")
    assert len(hub.uploads) == sent
    done("pull", REPO, "--out", "elsewhere")
    assert content(tmp_path / "elsewhere" / FULL) == content(runs / FULL)


REFUSALS = {
    401: r"POST /api/repos/create",
    403: r"POST .*/commit/",
    404: r"GET /api/datasets",
    400: r"POST .*/objects/batch",
}


@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_of_the_hub_is_told_and_leaves_nothing_behind(hub, runs, status):
    hub.refusals = [(REFUSALS[status], status)]
    result = c4("push", runs / FULL, REPO)
    assert result.exit_code == 2
    (said,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert said.startswith(f"error: pushing to {REPO}: ")
    assert str(status) in said
    assert "Traceback" not in result.stderr
    assert all(len(commits) == 1 for commits in hub.commits.values())


def test_a_push_that_was_overtaken_is_told_to_be_repeated(hub, runs):
    hub.refusals = [(r"POST .*/commit/", 412)]
    said = refused("push", runs / FULL, REPO)
    assert "give the same command again" in said
    assert "log in" not in said
    done("push", runs / FULL, REPO)


def test_a_wrong_token_is_told_with_what_to_type(hub, runs):
    hub.token = "hf_somebody"
    for command in (("push", runs / FULL, REPO), ("pull", REPO)):
        assert "hf auth login" in refused(*command)


@pytest.mark.parametrize("status", [429, 503])
def test_a_hub_that_is_busy_for_a_moment_is_asked_again(hub, runs, tmp_path, status):
    hub.refusals = [(r"PUT /objects", status), (r"POST .*/objects/batch", status)]
    done("push", runs / FULL, REPO)
    assert not hub.refusals
    hub.refusals = [(r"GET .*/resolve/", status)]
    pulled = c4("pull", REPO, "--out", "elsewhere")
    if pulled.exit_code:  # the client asks again for some of them only
        assert "give the same command again" in pulled.stderr
        pulled = c4("pull", REPO, "--out", "elsewhere")
    assert pulled.exit_code == 0, pulled.output
    assert content(tmp_path / "elsewhere" / FULL) == content(runs / FULL)
    assert not hub.refusals


def test_an_upload_that_broke_off_goes_on(hub, runs):
    hub.refusals = [(r"POST .*/commit/", 403)]
    assert c4("push", runs / FULL, REPO).exit_code == 2
    sent = list(hub.uploads)
    assert sent
    done("push", runs / FULL, REPO)
    assert hub.uploads == sent


def test_a_download_that_breaks_off_goes_on_at_the_byte_where_it_was(hub, runs, tmp_path):
    done("push", runs / FULL, REPO)
    hub.cut_at = 100
    done("pull", REPO, "--out", "elsewhere")
    assert content(tmp_path / "elsewhere" / FULL) == content(runs / FULL)
    assert len(hub.downloads) == 5  # one file in two pieces


def test_an_older_commit_can_be_pulled(hub, runs, tmp_path):
    done("push", runs / FULL, REPO)
    first, _ = hub.files(REPO)
    done("push", runs, REPO)
    done("pull", REPO, "--out", "elsewhere", "--revision", first)
    assert len(find_runs(tmp_path / "elsewhere")) == 1
    assert c4("pull", REPO, "--out", "elsewhere", "--revision", "nonesuch").exit_code == 2


@pytest.fixture
def other_cache(monkeypatch, tmp_path):
    """Where `datasets` keeps what it has prepared."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True)
    return tmp_path / "prepared"


def test_the_data_set_loads_by_its_card(hub, runs, tmp_path, other_cache):
    """`datasets` and the hub's viewer find rows and cells where the card says."""
    from datasets import load_dataset
    from huggingface_hub import DatasetCard

    done("push", runs, REPO)
    _, files = hub.files(REPO)
    for name, data in files.items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(data)
    card = DatasetCard.load(tmp_path / "copy" / "README.md")
    assert {"c4", "trajectories"} <= set(card.data.tags)
    recorded = [open_run(folder) for folder in find_runs(runs)]
    told = pl.read_parquet(tmp_path / "copy/runs/**/rows/*.parquet", hive_partitioning=True)
    methods = {run.manifest.identity["method"] for run in recorded}
    assert set(told["method"]) == methods
    for kind, expected in (("rows", sum(map(len, recorded))), ("cells", None)):
        loaded = load_dataset(str(tmp_path / "copy"), kind, cache_dir=str(other_cache))
        (frame,) = loaded.values()
        assert "trajectory" in frame.column_names
        assert frame.num_rows == expected or expected is None
        assert frame.num_rows > 0


def test_an_interrupted_pull_leaves_the_folder_alone_and_goes_on(hub, runs, tmp_path, monkeypatch):
    done("push", runs / FULL, REPO)
    monkeypatch.setattr("huggingface_hub.file_download.http_get", broken_once())
    assert "what has arrived is kept" in refused("pull", REPO, "--out", "elsewhere")
    assert find_runs(tmp_path / "elsewhere") == []
    before = list(hub.downloads)
    done("pull", REPO, "--out", "elsewhere")
    assert content(tmp_path / "elsewhere" / FULL) == content(runs / FULL)
    assert len(hub.downloads) == 4  # no file was fetched twice
    assert before


def broken_once():
    """The client's own download, which fails at the third file and works from then on."""
    from huggingface_hub.file_download import http_get

    calls = []

    def get(*args, **options):
        calls.append(args)
        if len(calls) == 3:
            raise ConnectionError("cable pulled")
        return http_get(*args, **options)

    return get


@pytest.mark.parametrize("kind", ["manifest.json", "tokenizer.json", "rows", "cells"])
def test_what_is_damaged_on_the_hub_is_not_put_in_place(hub, runs, tmp_path, kind):
    done("push", runs / FULL, REPO)
    _, files = hub.files(REPO)
    (name,) = [name for name in files if FULL in name and f"/{kind}" in name]
    data = bytearray(files[name])
    data[len(data) // 2] ^= 1
    hub.commit(REPO, {name: bytes(data)})
    assert "nothing was put in place" in refused("pull", REPO, "--out", "elsewhere")
    assert find_runs(tmp_path / "elsewhere") == []


def test_files_that_are_no_runs_are_not_even_fetched(hub, runs, tmp_path):
    done("push", runs / FULL, REPO)
    evil = {"runs/../../evil.py": b"boom", "setup.py": b"boom", f"runs/{FULL}/conftest.py": b"boom"}
    hub.commit(REPO, evil)
    done("pull", REPO, "--out", "elsewhere")
    assert not [name for name in hub.downloads if name.endswith(".py")]
    assert not list(tmp_path.rglob("*.py"))


@pytest.mark.parametrize("name", ["model=../task=a/method=b/../manifest.json", "../manifest.json"])
def test_a_name_that_leads_elsewhere_is_put_nowhere(hub, runs, tmp_path, name):
    done("push", runs / FULL, REPO)
    hub.commit(REPO, {f"runs/model=a/task=b/method=c/../../../../../{name}": b"{}"})
    before = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    assert c4("pull", REPO, "--out", "elsewhere").exit_code == 2
    assert {path for path in tmp_path.rglob("*") if "cache" not in path.parts} == before


def test_a_damaged_run_is_not_pushed(hub, runs):
    (part,) = (runs / FULL / "rows").iterdir()
    part.write_bytes(part.read_bytes()[:-9])
    assert part.name in refused("push", runs / FULL, REPO)
    assert not hub.commits


def test_a_data_set_that_is_not_there_or_holds_no_runs_is_said(hub, runs):
    assert "pulling somebody/nothing" in refused("pull", "somebody/nothing")
    hub.commits["somebody/other"] = [("1" * 40, {"data.csv": b""})]
    assert "holds no runs of c4" in c4("pull", "somebody/other").stderr
    assert "no runs to push" in c4("push", runs.parent / "empty", REPO).stderr
    assert c4("pull", "not a name").exit_code == 2


def test_a_pulled_run_never_chooses_code(hub, runs, tmp_path):
    """A manifest may name a task in a file; pulling and reading it must not run that file."""
    (tmp_path / "evil.py").write_text("open('harmed', 'w').close()\nTASK = 1")
    write_anew(runs / FULL, tmp_path / "theirs", task="evil.py:TASK")
    done("push", "theirs", REPO)
    done("pull", REPO, "--out", "elsewhere")
    (folder,) = find_runs(tmp_path / "elsewhere")
    assert open_run(folder).task_name == "evil.py:TASK"
    for command in (("runs",), ("runs", "--check"), ("replay",), ("report", "main")):
        result = c4(*command, "--runs", "elsewhere")
        assert result.exception is None or isinstance(result.exception, SystemExit), command
    done("runs", "--runs", "elsewhere")
    c4("grade", folder)
    assert not (tmp_path / "harmed").exists()
    c4("replay", "--runs", "elsewhere", "--task", "evil.py:TASK")  # the user chooses it
    assert (tmp_path / "harmed").exists()


def test_what_was_recorded_anew_replaces_what_was_pushed(hub, runs, tmp_path):
    done("push", runs, REPO)
    anew = write_anew(runs / FULL, tmp_path / "anew")
    done("push", anew, REPO)
    _, files = hub.files(REPO)
    there = {name.removeprefix(f"runs/{FULL}/") for name in files if f"runs/{FULL}/" in name}
    assert there == {p.relative_to(anew).as_posix() for p in anew.rglob("*.*") if p.is_file()}
    assert [name for name in files if "method=c4" in name]  # another run stays
    done("pull", REPO, "--out", "elsewhere")
    assert content(tmp_path / "elsewhere" / FULL) == content(runs / FULL)


def test_another_half_of_a_run_stays_beside_the_one_that_is_pushed(hub, runs, tmp_path):
    for name, numbers in (("a", [40]), ("b", [41, 42])):
        half = write_anew(runs / FULL, tmp_path / name, numbers)
        done("push", half, REPO)
    done("pull", REPO, "--out", "elsewhere")
    assert content(tmp_path / "elsewhere" / FULL) == content(runs / FULL)


def test_a_run_of_another_identity_is_not_replaced(hub, runs, tmp_path):
    done("push", runs / FULL, REPO)
    before = hub.files(REPO)
    other = write_anew(runs / FULL, tmp_path / "other", seed=7)
    assert "seed: 0 there, 7 here" in refused("push", other, REPO)
    assert hub.files(REPO) == before


def test_two_folders_of_one_run_are_not_pushed_as_one(hub, runs, tmp_path):
    shutil.copytree(runs / FULL, tmp_path / "both" / "a" / FULL)
    write_anew(runs / FULL, tmp_path / "both" / "b")
    assert "join them first" in refused("push", "both", REPO)
    assert not hub.commits


def test_a_run_that_says_it_belongs_elsewhere_is_not_put_in_place(hub, runs, tmp_path):
    other = write_anew(runs / FULL, tmp_path / "other", task="math")
    done("push", runs / FULL, REPO)
    _, files = hub.files(REPO)
    moved = {
        f"runs/{FULL}/{path.relative_to(other).as_posix()}": path.read_bytes()
        for path in other.rglob("*.*")
        if path.is_file()
    }
    hub.commit(REPO, moved, removed=[name for name in files if FULL in name])
    said = refused("pull", REPO, "--out", "elsewhere")
    assert "belongs in runs/model=tiny/task=math/method=baseline" in said
    assert find_runs(tmp_path / "elsewhere") == []


HARMFUL = ["math; rm -rf ~", "$(id)", "a`id`", "x\n```\nid", "[a](https://evil.example)", "a|b\\|c"]
HARMFUL += ["<img src=x>", "![x](http://x.example/y.png)", "https://evil.example", "-rf"]


@pytest.mark.parametrize("name", HARMFUL)
def test_names_in_others_manifests_are_shown_and_do_nothing(name):
    manifest = read_manifest(DATA / FULL)
    changed = dict.fromkeys(("task", "model", "label", "origin", "dtype"), name)
    harmful = replace(
        manifest,
        identity=dict(manifest.identity) | changed,
        environment={"libraries": {name: name}},
    )
    card = make_card(REPO, {f"runs/{name}": harmful, "runs/mine": manifest})
    _, block, after = card.split("```")
    assert block.strip().splitlines() == [f"c4 pull {REPO}", "c4 replay --task mmlu"]
    said, *outside = after.split("`")[::2]
    assert said.strip() == "These tasks are not part of c4:"
    assert not any(sign in part for part in outside for sign in "[]<$;!\\")
    tables = [line for line in card.splitlines() if line.startswith("|")]
    assert all(line.count("|") in (3, 7) for line in tables)
    for line in tables:
        if name.split()[0] in line:
            outside = line.split("`")[::2]
            assert not any(sign in part for part in outside for sign in "[]<$;!\\:")


def test_a_command_that_an_error_suggests_is_quoted(runs, tmp_path):
    from c4.errors import C4Error
    from c4.store.runs import find_recorded_task, with_known_task

    definition = {"task": "my tasks.py:TASK; rm -rf ~", "source_sha256": "0"}
    anew = write_anew(runs / FULL, tmp_path / "own", task="sums", task_definition=definition)
    for ask in (
        lambda: find_recorded_task("sums", tmp_path / "own"),
        lambda: with_known_task([open_run(anew)]),
    ):
        with pytest.raises(C4Error, match=r"--task 'my tasks\.py:TASK; rm -rf ~'"):
            ask()


def test_a_public_data_set_gets_nothing_that_was_to_be_private(hub, runs):
    hub.commits[REPO] = [("0" * 40, {})]
    assert "is public already" in refused("push", runs / FULL, REPO, "--private")
    assert not hub.committed
    hub.private[REPO] = True
    done("push", runs / FULL, REPO, "--private")


DEFINITIONS = {
    "c4 replay --task sums": {"fields": {"task": "sums"}},  # a YAML file, which runs bring whole
    "c4 runs": {"task": "my_task.py:TASK", "source_sha256": "0"},
}


@pytest.mark.parametrize("command", DEFINITIONS)
def test_the_card_tells_only_what_works_without_the_author_s_files(command):
    manifest = read_manifest(DATA / FULL)
    identity = dict(manifest.identity) | {"task": "sums", "task_definition": DEFINITIONS[command]}
    card = make_card(REPO, {"runs/x": replace(manifest, identity=identity)})
    assert card.split("```")[1].strip().splitlines() == [f"c4 pull {REPO}", command]
    assert ("not part of c4: `sums`" in card) == ("task" in DEFINITIONS[command])
    assert card.endswith("brings code.\n") == ("not part of c4" in card)


def test_tasks_in_the_card_are_quoted_for_the_shell():
    manifest = read_manifest(DATA / FULL)
    named = replace(manifest, identity=dict(manifest.identity) | {"task": "lm-eval:a+b"})
    *_, command = make_card(REPO, {"runs/x": named}).split("```")[1].strip().splitlines()
    assert shlex.split(command) == ["c4", "replay", "--task", "lm-eval:a+b"]


@pytest.mark.parametrize("libraries", [None, "torch", ["torch"], {"torch": None}])
def test_an_odd_environment_makes_a_card_all_the_same(libraries):
    manifest = replace(read_manifest(DATA / FULL), environment={"libraries": libraries})
    assert "## With what" in make_card(REPO, {"runs/x": manifest})


def test_a_label_with_dots_is_pushed_and_pulled(hub, runs):
    write_anew(runs / FULL, runs / "dotted", label="a..b")
    done("push", runs / "dotted", REPO)
    done("pull", REPO, "--out", "elsewhere")
    (pulled,) = find_runs("elsewhere")
    assert pulled.name == "method=a..b"
