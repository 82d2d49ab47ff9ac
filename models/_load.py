"""Loading: turn a checkpoint into a `LoadedModel` that is ready for use."""

import hashlib
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from c4.errors import ModelError
from c4.models._architectures import architecture_of, brief
from c4.models._build import build_model
from c4.models._checkpoint import Checkpoint, weight_files
from c4.models._denoiser import Denoiser
from c4.models._devices import DTYPES, resolve_device, resolve_dtype
from c4.models._hash import weights_hash
from c4.models._tokens import embedded_tokens, find_ends, find_mask, load_tokenizer


@dataclass(frozen=True)
class LoadedModel:
    """A denoiser with its tokenizer, special tokens and origin."""

    checkpoint: Checkpoint
    denoiser: Denoiser
    tokenizer: PreTrainedTokenizerBase
    end_ids: tuple[int, ...]
    """Tokens that end a text or a turn; those of config.json come first."""
    weights_sha256: str
    device: str
    dtype: str

    @property
    def max_length(self) -> int | None:
        """Maximum number of positions that the model supports, including the prompt."""
        limit = getattr(self.denoiser.model.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    @property
    def vocab_size(self) -> int:
        """Number of tokens that the model can predict; the tokenizer may know fewer."""
        return int(self.denoiser.model.config.vocab_size)

    @property
    def tokenizer_json(self) -> str:
        """The tokenizer in the `tokenizers` library's own format."""
        return str(self.tokenizer.backend_tokenizer.to_str())

    @property
    def tokenizer_sha256(self) -> str:
        template = self.tokenizer.chat_template or ""
        return hashlib.sha256(f"{self.tokenizer_json}\n{template}".encode()).hexdigest()

    @property
    def applies_template(self) -> bool:
        """Whether `encode_prompt` applies a chat template; recorded in runs."""
        return self.tokenizer.chat_template is not None

    def encode_prompt(self, prompt: str) -> list[int]:
        """Encode a user's message, applying the chat template if the tokenizer has one."""
        if not self.applies_template:
            return list(self.tokenizer(prompt, verbose=False)["input_ids"])
        chat = [{"role": "user", "content": prompt}]
        try:
            ids = self.tokenizer.apply_chat_template(
                chat,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                # Prompts that are too long are rejected elsewhere, with our own message.
                tokenizer_kwargs={"verbose": False},
            )
        except Exception as error:  # a template may raise anything
            raise ModelError(
                f"{self.checkpoint.folder}: the chat template fails on a prompt ({brief(error)})"
            ) from error
        return list(ids)


def load_model(checkpoint: Checkpoint, *, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load a checkpoint's weights and tokenizer. No code of the checkpoint is run."""
    where, precision = resolve_device(device), resolve_dtype(dtype, resolve_device(device))
    architecture = architecture_of(checkpoint)
    tokenizer = load_tokenizer(checkpoint)
    rows = embedded_tokens(architecture, checkpoint, tokenizer)
    mask_id = find_mask(checkpoint, tokenizer, rows)
    end_ids = find_ends(checkpoint, tokenizer, rows, mask_id)
    files = weight_files(checkpoint)
    model = build_model(architecture, checkpoint, files, where, DTYPES[precision])
    denoiser = Denoiser(model, mask_id=mask_id, shift=checkpoint.shift)
    return LoadedModel(
        checkpoint=checkpoint,
        denoiser=denoiser,
        tokenizer=tokenizer,
        end_ids=end_ids,
        weights_sha256=weights_hash(files),
        device=where,
        dtype=precision,
    )
