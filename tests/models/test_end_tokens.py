"""What ends a text or a turn is read from every place where a checkpoint says it."""

import json

import pytest
from conftest import byte_tokenizer, save_llada
from tokenizers import AddedToken, Tokenizer, models
from transformers import PreTrainedTokenizerFast

from c4.errors import ModelError
from c4.models import find_checkpoint, load_model
from c4.models._checkpoint import EMBEDDED_FOLDER
from c4.models._template import ASSISTANTS, USERS, render_turns, turn_ends

SPECIAL = [
    *("<|begin|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>", "</s>"),
]
HEADER = "'<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n'"
LLADA = (
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}{{ "
    + HEADER
    + " + message.content | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)
DREAM = (
    "{%- if messages[0].role != 'system' %}{{- '<|im_start|>system\\nBe helpful.<|im_end|>\\n' }}"
    "{%- endif %}{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + "
    "message.content + '<|im_end|>' + '\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
ROLES = "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content }}"
LOOP = "{% for message in messages %}"
TEMPLATES = {
    "llada": (LLADA, ["<|eot_id|>"]),
    "llada, always asking for an answer": (
        LLADA.replace("{% if add_generation_prompt %}", "{% if true %}"),
        ["<|eot_id|>"],
    ),
    "dream": (DREAM, ["<|im_end|>"]),
    "the next turn is all that ends one": (ROLES + "{% endfor %}", []),
    "likewise, always asking for an answer": (ROLES + "{% endfor %}<|assistant|>", []),
    "white space in front": (
        LOOP + "{% if message.role == 'user' %}<|begin|>[INST] {{ message.content }} [/INST]"
        "{% else %} {{ message.content }} </s>{% endif %}{% endfor %}",
        ["</s>"],
    ),
    "two tokens": (
        LOOP + "{{ message.content }}<|im_end|>\n</s>{% endfor %}",
        ["<|im_end|>", "</s>"],
    ),
    "a separator": (LOOP + "{{ message.content + '</s>' }}{% endfor %}", ["</s>"]),
    "words only": (LOOP + "{{ message.role }}: {{ message.content }}\n{% endfor %}", []),
    "no answer at all": ("{{ messages[0].content }}", []),
    "marked for training": (
        LOOP + "<|{{ message.role }}|>{% generation %}{{ message.content }}<|im_end|>"
        "{% endgeneration %}{% endfor %}",
        ["<|im_end|>"],
    ),
    "an ordinary word behind it": (LOOP + "{{ message.content }}plain{% endfor %}", []),
}


def chatty(template):
    """A tokenizer with many special tokens, one added token that is none, and a template."""
    tokenizer = byte_tokenizer(["plain"])
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|begin|>",
        eos_token="<|end|>",
        mask_token="<|mask|>",
        chat_template=template,
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_turn_ends_as_the_chat_template_writes_it(name):
    template, ends = TEMPLATES[name]
    tokenizer = chatty(template)
    assert tokenizer.convert_ids_to_tokens(list(turn_ends(tokenizer))) == ends


@pytest.mark.parametrize(
    ("template", "tokens", "ends"),
    [
        (LLADA, {"<|endoftext|>": 126081, "<|begin|>": 126080, "<|eot_id|>": 126348}, (126348,)),
        (DREAM, {"<|endoftext|>": 151643, "<|begin|>": 151665, "<|im_end|>": 151645}, (151645,)),
    ],
)
def test_ids_are_the_vocabulary_s_own(template, tokens, ends):
    backend = Tokenizer(models.WordLevel(tokens, unk_token="<|endoftext|>"))
    backend.add_special_tokens(list(tokens))
    names = {"bos_token": "<|begin|>", "eos_token": "<|endoftext|>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, chat_template=template, **names)
    assert turn_ends(tokenizer) == ends


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_trial_renders_what_transformers_renders(name):
    template, _ = TEMPLATES[name]
    tokenizer = chatty(template)
    variables = json.dumps(tokenizer.special_tokens_map)
    words = [USERS[0], ASSISTANTS[0], USERS[1], ASSISTANTS[1]]
    roles = ["user", "assistant"] * 2
    messages = [{"role": r, "content": w} for r, w in zip(roles, words, strict=True)]
    render = tokenizer.apply_chat_template
    for count in (1, 4):
        whole = render(messages[:count], add_generation_prompt=count == 1, tokenize=False)
        assert render_turns(template, variables, count) == whole


def test_a_template_that_takes_one_question_only_says_nothing_of_ends(caplog):
    once = "{% if messages | length > 1 %}{{ raise_exception('one!') }}{% endif %}{{ messages }}"
    assert turn_ends(chatty(once)) == ()
    assert "cannot write an assistant's turn (TemplateError: one!)" in caplog.text


def test_the_embedded_model_s_ends_are_what_they_were():
    eos = json.loads((EMBEDDED_FOLDER / "config.json").read_text())["eos_token_id"]
    assert load_model(find_checkpoint("tiny")).end_ids == (eos,)


def saved(folder, *, generation=None, template=None, **changes):
    """A random LLaDA, loaded; its tokenizer ends a text with 256 and masks with 257."""
    save_llada(folder, **changes)
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    return load_model(find_checkpoint(str(folder)))


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({}, (256,)),
        ({"eos_token_id": None}, (256,)),
        ({"eos_token_id": 7}, (7, 256)),
        ({"eos_token_id": [7, 8, 7]}, (7, 8, 256)),
        ({"generation": {"eos_token_id": 9}}, (256, 9)),
        ({"generation": {"eos_token_id": [9, 10]}, "eos_token_id": 9}, (9, 10, 256)),
        ({"generation": {"eos_token_id": None}}, (256,)),
        ({"generation": {}}, (256,)),
        ({"template": LOOP + "{{ message.content }}<|end|>{% endfor %}"}, (256,)),
    ],
)
def test_all_places_count_and_each_token_once(tmp_path, changes, ends):
    assert saved(tmp_path, **changes).end_ids == ends


def test_null_hides_nothing(tmp_path):
    absent = ("mask_token_id", "n_kv_heads", "rope_theta", "rms_norm_eps", "embedding_size")
    loaded = saved(tmp_path, **dict.fromkeys(absent), mlp_ratio=None, clip_qkv=None)
    config = loaded.denoiser.model.config
    assert loaded.denoiser.mask_id == 257
    assert (config.num_key_value_heads, config.rms_norm_eps, config.vocab_size) == (4, 1e-5, 258)
    assert config.rope_parameters["rope_theta"] == 500_000.0


def test_a_template_that_fails_on_one_prompt_says_so(tmp_path):
    template = (
        "{% if 'x' in messages[0].content %}{{ raise_exception('no x') }}{% endif %}"
        "y{{ messages[0].content }}"
    )
    loaded = saved(tmp_path, template=template)
    assert loaded.encode_prompt("a") == loaded.tokenizer("ya")["input_ids"]
    with pytest.raises(ModelError, match=r"fails on a prompt \(TemplateError: no x\)"):
        loaded.encode_prompt("x")
