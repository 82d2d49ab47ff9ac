"""Parts that many tests share: models small enough to read, and folders to find data in."""

import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import BertConfig, BertForMaskedLM
from typer.main import get_command

from c4.models import Reading
from c4.store.locations import ObjectPath, parse_location
from tests.s3_server import Counter, environment, make_bucket, serve_s3

# No timed tests: machines are shared.
settings.register_profile("c4", deadline=None)
settings.load_profile("c4")

NO_BROWSER = "no Chromium here, so nobody looked at the viewer's page: make browser"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it loudly where the viewer's page was not looked at."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any(NO_BROWSER in str(report.longrepr) for report in skipped):
        terminalreporter.section("NOT TESTED", red=True, bold=True)
        terminalreporter.line(NO_BROWSER)


LONG = {
    *("test_viewer_page.py", "test_demo.py", "test_docs.py", "test_figures.py", "test_engines.py"),
    *("test_reliability.py", "test_own_workers.py", "test_authors.py", "test_first_commands.py"),
    *("test_cli.py", "test_run.py", "test_hostile.py", "test_batch_runs.py"),
}
"""Files whose tests take longest."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several processes, let none be left alone with a long file at the end."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.name not in LONG)


SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real benchmark rows, where this checkout has them beside it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("needs the benchmark rows in ../shared/data")
    return SHARED / "data"


@pytest.fixture(scope="session")
def reference() -> Path:
    """Random checkpoints with the logits that their authors' own code computes."""
    return Path(__file__).parent / "data" / "checkpoints"


def made_reading(
    token: np.ndarray, confidence: np.ndarray, gap: np.ndarray, entropy: np.ndarray
) -> Reading:
    """A reading whose odds are those of its confidence."""
    return Reading(token, 1 / confidence - 1, confidence, gap, entropy)


class Scripted:
    """A denoiser that says what it is told: tables[step][position] for token and confidence."""

    mask_id = 99
    shift = False

    def __init__(self, tokens: Sequence[Sequence[int]], confidence: Sequence[Sequence[float]]):
        self.tokens = np.array(tokens, dtype=np.int64)
        self.confidence = np.array(confidence, dtype=np.float32)
        self.inputs: list[np.ndarray] = []

    def read(self, ids: np.ndarray, start: int) -> Reading:
        step = len(self.inputs)
        self.inputs.append(ids.copy())
        confidence = self.confidence[step]
        return made_reading(self.tokens[step], confidence, confidence * 10, 1 - confidence)


def byte_tokenizer(words: Sequence[str] = ()) -> Tokenizer:
    """A byte-level tokenizer: 256 bytes, then words, then an end and a mask token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {char: i for i, char in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words])
    tokenizer.add_special_tokens(["<|end|>", "<|mask|>"])
    return tokenizer


LLADA = {
    "model_type": "llada",
    "architectures": ["LLaDAModelLM"],
    "auto_map": {"AutoModelForCausalLM": "modeling_llada.LLaDAModelLM"},
    "d_model": 32,
    "n_heads": 4,
    "n_kv_heads": 4,
    "n_layers": 2,
    "mlp_ratio": 4,
    "mlp_hidden_size": 48,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-5,
    "max_sequence_length": 1024,
    "weight_tying": False,
    "c4_shapes": {
        "letters": {"length": 16, "budget": 16, "block_length": 4},
        "long_reasoning": {"length": 24, "budget": 24, "block_length": 3},
        "code": {"length": 16, "budget": 8, "block_length": 4},
    },
}


def llada_tensors(config: dict, vocab: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random weights under LLaDA's names."""
    generator = torch.Generator().manual_seed(seed)
    width, inner = config["d_model"], config["mlp_hidden_size"]

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * 0.3

    tensors = {
        "wte": random(vocab, width),
        "ln_f": torch.ones(width),
        "ff_out": random(vocab, width),
    }
    for i in range(config["n_layers"]):
        tensors |= {
            f"blocks.{i}.attn_norm": torch.ones(width),
            f"blocks.{i}.ff_norm": torch.ones(width),
            f"blocks.{i}.ff_proj": random(inner, width),
            f"blocks.{i}.up_proj": random(inner, width),
            f"blocks.{i}.ff_out": random(width, inner),
        }
        for name in ("q_proj", "k_proj", "v_proj", "attn_out"):
            tensors[f"blocks.{i}.{name}"] = random(width, width)
    return {f"model.transformer.{name}.weight": tensor for name, tensor in tensors.items()}


def save_llada(folder: Path, *, seed: int = 0, **changes: object) -> Path:
    """A whole random LLaDA checkpoint, as the hub would hold it."""
    tokenizer = byte_tokenizer()
    vocab = tokenizer.get_vocab_size()
    ids = {"mask_token_id": vocab - 1, "eos_token_id": vocab - 2}
    config = LLADA | {"vocab_size": vocab, "embedding_size": vocab} | ids | changes
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|end|>", "mask_token": "<|mask|>"})
    )
    tensors = llada_tensors(config, vocab, seed)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def save_bert(folder: Path) -> Path:
    """A random masked language model that transformers itself knows, with a tokenizer."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=258, intermediate_size=16, max_position_embeddings=32, **sizes)
    BertForMaskedLM(config).save_pretrained(folder)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    named = {"tokenizer_class": "PreTrainedTokenizerFast"}
    named |= {"eos_token": "<|end|>", "mask_token": "<|mask|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    return folder


@pytest.fixture(scope="session")
def random_llada(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random LLaDA checkpoint that loads and decodes in milliseconds."""
    return save_llada(tmp_path_factory.mktemp("models") / "random-llada")


@pytest.fixture
def short_lease(monkeypatch):
    """A claim that its maker did not live to sign is free again after a moment."""
    monkeypatch.setenv("C4_LEASE", "0.2")


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches for the network; the hub's cache still answers."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True)
def _forget_plug_ins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Modules that one test wrote and loaded are not those that the next one finds."""
    yield
    made = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(made):
            del sys.modules[name]
    sys.path[:] = [folder for folder in sys.path if not folder.startswith(made)]


@pytest.fixture(scope="session", autouse=True)
def _one_tree_of_commands() -> Iterator[None]:
    """Typer would build the whole command anew for every line that a test invokes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny matrices are slower on many threads, and other tests may be running."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server on loopback."""
    with serve_s3() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ObjectPath:
    """An empty bucket on that server, which the environment names; nothing is cached elsewhere."""
    for name, value in environment(s3_server).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("C4_RETRY_SECONDS", "5")
    return parse_location(make_bucket(s3_server))


@pytest.fixture
def s3(bucket: ObjectPath, s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter]:
    """What stands between c4 and the server, counts, and may answer in its place."""
    with Counter(s3_server).running() as counter:
        monkeypatch.setenv("AWS_ENDPOINT_URL", counter.address)
        yield counter
