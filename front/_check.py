"""`c4.check`: test a user's gate, rule, task, extractor, grader or signal before it is used.

The object is called as commands call it, with the same guards, on made-up decodes and odd texts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from c4.decode.commits import Rule
from c4.decode.guard import GuardedRule
from c4.decode.rules import REGISTRY as RULE_NAMES
from c4.decode.rules import is_rule, make_rule
from c4.errors import RAISED, C4Error, ConfigError, failure, naming_failures
from c4.gates.candidates import CandidateReader
from c4.gates.gate import ask, is_gate, needs_future, wants_cells
from c4.gates.live import LiveGate, LiveSignals
from c4.gates.own_signals import REGISTRY as SIGNAL_NAMES
from c4.gates.own_signals import find_signal, own_signals
from c4.gates.registry import REGISTRY as GATE_NAMES
from c4.gates.registry import checked_gate, make_gate, set_parameters
from c4.gates.signals import Signals, read_signals
from c4.gates.steps import StepView, fixed_point, stack_views
from c4.plugins import Registry
from c4.plugins.parameters import plain_settings
from c4.store.arrays import BoolArray, IntArray
from c4.store.cells import Cells
from c4.tasks import TASKS, AnswerReading, Candidate, Example, Family, Shape, Task, find_task, grade
from c4.tasks.examples import default_source, load_samples
from c4.tasks.graders import REGISTRY as GRADER_NAMES
from c4.tasks.graders import find_grader, guard_judge
from c4.tasks.grading import Verdict
from c4.tasks.reading.extractors import REGISTRY as EXTRACTOR_NAMES
from c4.tasks.reading.extractors import Finder, as_finder, find_style, guard_extractor
from c4.tasks.registry import REGISTRY as TASK_NAMES
from c4.tasks.registry import is_task, names_task
from c4.tasks.task import Choices, Extractor, Judge, ReadingStyle
from c4.tasks.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

    from c4.decode import Decoded
    from c4.models import Reading

SHAPE = Shape(length=16, budget=16, block_length=4)
PROMPT = np.array([1, 2, 3])
CHOICES = ("no", "yes")
RULE_SHAPES = (
    Shape(length=8, budget=8, block_length=4),
    Shape(length=12, budget=6, block_length=4),
    Shape(length=6, budget=6, block_length=6),
)
"""Decode shapes for testing rules; a rule may reject some of them."""
WRITTEN = ("B. It is 12 or 7", "A, that is 1 + 2", "B. No, it is 42.", "no idea at all..")
"""Texts that a made-up decode may predict, one byte per position."""
MADE_SEEDS = (0, 3, 8, 10)
"""Seeds of made-up decodes whose answers waver and then settle, so that CVEE exits each."""
END = 256
VOCABULARY, MASK = 11, 10
"""Vocabulary size and mask token of the model without weights that tests rules."""
ODD_TEXTS = (
    *("", " ", "no answer here", "A", "I think (B) is right.", "12", "x = 3.5, so 1,234 in all"),
    *(r"\boxed{7}", r"\boxed{", "def f(x):\n    return x", "```python\ndef", "漢字 ½ −3", "\n\n\n"),
)
"""Texts that an extractor must handle: an unfinished decode may contain anything."""
GRADED = (
    (Example("What is 6 + 6?", "12"), ("12", "-3", "x", "")),
    (Example("Which?", "B", choices=CHOICES), ("B", "A", "")),
    (Example("Solve.", r"\frac{1}{2}"), (r"\frac{1}{2}", "0.5", r"\frac{")),
)
"""Examples with answers to grade."""
GOLD = (
    *("{}", "The answer is {}", r"The answer is \boxed{{}}.", "#### {}", "{}.", "Answer: {}"),
    *("The total is {}", "<answer>{}</answer>", "**{}**", "[{}]"),
)
"""Ways to write a gold answer; an extractor should be able to read at least one."""
MOST_EXAMPLES = 5
TIMES_ASKED = 4
"""Repetitions of each call to a gate: one that counts its calls may differ only sometimes."""


def check(thing: Any, kind: str | None = None, *, written: str | None = None) -> str:
    """Check a plug-in, your own or one of c4's, as commands would use it.

    Args:
        thing: a name as in commands, an object, or a class whose parameters have defaults.
        kind: gate, rule, task, extractor, grader or signal; detected if None.
        written: for a task that needs marked answers, the format of an answer: `"<<{}>>"`.

    Returns:
        The kind of the object.

    Raises:
        ConfigError: the first problem found.
    """
    found = kind or _kind_of(thing)
    if found not in CHECKS:
        raise ConfigError(f"there is no kind of plug-in {found!r}; there are {', '.join(CHECKS)}")
    name = thing if isinstance(thing, str) else getattr(thing, "__name__", type(thing).__name__)
    try:
        if found == "task":
            _check_task(thing, written)
        else:
            CHECKS[found](name, thing)
    except C4Error as error:
        article = "an" if found == "extractor" else "a"
        raise ConfigError(f"{name} fails the check of {article} {found}: {error}") from error
    return found


REGISTRIES = (TASK_NAMES, GATE_NAMES, RULE_NAMES, EXTRACTOR_NAMES, GRADER_NAMES, SIGNAL_NAMES)


def _kind_of(thing: Any) -> str:
    """Detect the kind of an object from its type or its function's parameters."""
    if isinstance(thing, str):
        known = [registry.noun for registry in REGISTRIES if thing in registry.names]
        if known or (":" not in thing and names_task(thing)):  # it is a YAML file
            return known[0] if known else "task"
        names = dict.fromkeys(name for registry in REGISTRIES for name in registry.names)
        thing = Registry("plug-in", "c4 plugins check", names, "my_gates:Calm").find(thing).found
    for noun, fits in (("rule", is_rule), ("gate", is_gate), ("task", is_task)):
        if fits(thing):
            return noun
    if isinstance(thing, Finder):
        return "extractor"
    if not callable(thing):
        raise ConfigError(f"{thing!r} is no gate, rule, task, extractor, grader or signal")
    takes = list(signature(thing).parameters)
    if len(takes) == len(("example", "answer", "text")):
        return "grader"
    return "extractor" if takes[:1] == ["text"] else "signal"


def _check_gate(name: str, thing: Any) -> None:
    try:
        gate = make_gate(thing) if isinstance(thing, str | type) else checked_gate(name, thing)
    except TypeError as error:
        raise ConfigError(f"it cannot be made without arguments: {failure(error)}") from error
    plain_settings(name, set_parameters(gate))  # raises if a manifest cannot store them
    decodes = _made_decodes()
    for made in decodes:
        s = made.signals([gate])
        first, *again = (ask(gate, s, made.cells) for _ in range(TIMES_ASKED))
        if not all(np.array_equal(first, answer) for answer in again):
            raise ConfigError("asked twice about the same steps, it answers differently")
        if not needs_future(gate):
            live = LiveGate(gate, SHAPE, made.reader, CHOICES)
            for view, replayed in zip(made.views, first, strict=True):
                if live.fires(view) != replayed:
                    raise ConfigError(
                        f"at step {view.step} it answers {not replayed} inside a decode and "
                        f"{replayed} over the recording: it looks at later steps; if it must, set "
                        "needs_future = True"
                    )
    if not wants_cells(gate):
        several = [made for made in decodes if made.task == "gsm8k"]
        together = ask(gate, _signals(several, [gate]))
        if not all(
            np.array_equal(row, ask(gate, made.signals([gate])))
            for row, made in zip(together, several, strict=True)
        ):
            raise ConfigError(
                "it decides a stack of trajectories otherwise than each alone: signals are "
                "(…, steps), so reduce and shift along the last axis only"
            )


def _check_signal(name: str, thing: Any) -> None:  # noqa: ARG001 - all checks have one signature
    signal = find_signal(thing)
    if signal is None:  # c4's own are not functions
        return
    for made in _made_decodes():
        values, again = (signal(made.signals(), made.cells) for _ in range(2))
        if not np.array_equal(values, again, equal_nan=True):
            raise ConfigError("asked twice about the same steps, it answers differently")
        live = LiveSignals(SHAPE, made.reader, CHOICES, {signal.name: signal})
        for view, value in zip(made.views, values, strict=True):
            known = getattr(live.append(view), signal.name)[-1]
            if not np.array_equal(known, value, equal_nan=True):
                raise ConfigError(
                    f"its value at step {view.step} changes when later steps are known, so a "
                    "decode and its recording would disagree; use the present step and those "
                    "before it"
                )


def _check_rule(name: str, thing: Any) -> None:
    if isinstance(thing, type) and not is_rule(thing):
        raise ConfigError("it is not derived from c4.decode.Rule")
    try:
        rule: Rule = make_rule(thing, {}) if isinstance(thing, str) else thing
        rule = rule() if isinstance(rule, type) else rule
    except TypeError as error:
        raise ConfigError(f"it cannot be made without arguments: {failure(error)}") from error
    own = vars(type(rule))
    if "__dataclass_fields__" not in own and own.keys() & {"__annotations__", "__init__"}:
        raise ConfigError("its class is no dataclass; write @dataclass(frozen=True) above it")
    plain_settings(name, vars(rule))
    guarded = GuardedRule(rule)
    refusals = []
    for shape in RULE_SHAPES:
        with naming_failures(f"the rule {guarded.name} fails"):
            try:
                rule.check(shape, shift=False)
            except C4Error as error:
                refusals.append(f"{shape} ({error})")
                continue
        first, second = (_decode(_Model(), shape, guarded) for _ in range(2))
        if (first.ids == MASK).any():
            raise ConfigError(f"it leaves positions masked at {shape}")
        if first.steps != second.steps or not np.array_equal(first.ids, second.ids):
            raise ConfigError(
                "a second decode differs from the first: start() must return a new state each "
                "time, and the rule itself must not change"
            )
    if len(refusals) == len(RULE_SHAPES):
        raise ConfigError(f"it refuses every shape that it was tried at: {'; '.join(refusals)}")


def _check_task(thing: Any, written: str | None) -> None:
    task = find_task(thing) if isinstance(thing, str) else thing
    if not isinstance(task, Task):
        raise ConfigError("it is no c4.tasks.Task")
    if TASKS.get(task.name) is None:  # c4's own tasks are covered by tests
        task = replace(
            task,
            extract=guard_extractor(task.name, task.extract),
            plain=guard_extractor(task.name, task.plain),
        )
    source = default_source(task, embedded=task.name in TASKS)
    some = min(MOST_EXAMPLES, load_samples(task, source, n=1).usable)
    first, second = (load_samples(task, source, skip=0, n=some).samples for _ in range(2))
    if first != second:
        raise ConfigError("its rows or examples are not the same when they are read again")
    texts = (*ODD_TEXTS, *(sample.example.target for sample in first))
    for extract in (task.extract, task.plain):
        _read_twice(extract, texts, first[0].example.choices)
    for sample in first:
        if not sample.example.prompt.strip():
            raise ConfigError(f"the prompt of example {sample.index} is empty")
        _check_gold(task, sample.example, sample.index, written)


def _check_gold(task: Task, example: Example, index: int, written: str | None) -> None:
    """Require that the gold answer is graded right in at least one way of writing it."""
    texts = [example.target]
    if task.family is not Family.CODE:
        texts = [way.replace("{}", example.target) for way in (*GOLD, *filter(None, [written]))]
        texts += [text.upper() for text in texts]
    verdicts = []
    for text in texts:
        verdicts.append(grade(task, example, text).verdict)
        if verdicts[-1] in (Verdict.RIGHT, Verdict.NOT_GRADABLE):
            return
    told = f"the gold answer of example {index}, {example.target!r}, is graded "
    if set(verdicts) == {Verdict.NO_ANSWER}:
        raise ConfigError(
            f"{told}no answer, for extract finds it in none of the usual texts; say how a model "
            "writes an answer: c4.check(task, written='<<{}>>')"
        )
    raise ConfigError(f"{told}{verdicts[0]}; extract and normal must give it the same form")


def _check_extractor(name: str, thing: Any) -> None:
    style = find_style(thing) if isinstance(thing, str) else None
    if style in list(ReadingStyle):  # belongs to a task and is checked with it
        return
    found: Any = thing if style is None else EXTRACTOR_NAMES.behind(style)
    is_own = style in EXTRACTOR_NAMES.own
    finder = (
        Finder(find=found["extract"], normal=found.get("normal", str))
        if is_own
        else as_finder(name, found)
    )
    _read_twice(guard_extractor(name, finder.find), ODD_TEXTS, CHOICES)
    for example, _ in GRADED if finder.normal else ():
        try:
            form: Any = finder.normal(example.target)  # type: ignore[misc]  # not None here
        except RAISED as error:
            raise ConfigError(
                f"its normal form fails on {example.target!r}: {failure(error)}"
            ) from error
        if not isinstance(form, str):
            raise ConfigError(f"its normal form of {example.target!r} is {form!r} and no text")


def _read_twice(extract: Extractor, texts: Sequence[str], choices: Choices) -> None:
    for text in texts:
        for offered in ((), choices):
            found: list[Candidate | None] = [extract(text, offered) for _ in range(2)]
            if found[0] != found[1]:
                raise ConfigError(f"it reads {text!r} differently when it is asked again")


def _check_grader(name: str, thing: Any) -> None:
    judge: Judge = thing
    if isinstance(thing, str):
        label = find_grader(thing)
        if label in GRADER_NAMES.own:  # c4's own are not functions
            return
        judge = GRADER_NAMES.behind(label)
    guarded = guard_judge(name, judge)
    for example, answers in GRADED:
        for answer in answers:
            if guarded(example, answer, answer) != guarded(example, answer, answer):
                raise ConfigError(f"it grades {answer!r} differently when it is asked again")


CHECKS: dict[str, Callable[..., None]] = {
    "gate": _check_gate,
    "rule": _check_rule,
    "task": _check_task,
    "extractor": _check_extractor,
    "grader": _check_grader,
    "signal": _check_signal,
}


class _MadeDecode:
    """A made-up decode with the default schedule, and its signals and cells."""

    def __init__(self, task: str, seed: int) -> None:
        self.task = task
        self.reader = CandidateReader(TASKS[task], _vocabulary(), SHAPE.length, AnswerReading())
        self.views = list(_made_views(seed))
        self.cells = _read_only(stack_views(self.views))

    def signals(self, gates: Sequence[object] = ()) -> Signals:
        """Signals of the decode. (T,)"""
        return _read_only(_signals([self], gates).one(0))


def _signals(decodes: Sequence[_MadeDecode], gates: Sequence[object]) -> Signals:
    """Stacked signals of several decodes of one task. (n, T)"""
    names = vars(decodes[0].cells)
    cells = Cells(**{name: np.stack([getattr(d.cells, name) for d in decodes]) for name in names})
    choices = [CHOICES for _ in decodes]
    return read_signals(cells, SHAPE, decodes[0].reader, choices, own_signals(gates))[0]


def _read_only(columns: Any) -> Any:
    """Make signals or cells read-only, because several calls share them."""
    for column in vars(columns).values():
        column.flags.writeable = False
    return columns


def _made_decodes() -> list[_MadeDecode]:
    """Make decodes whose answer is located from step 1 (mmlu) or only in the last block."""
    return [_MadeDecode(task, seed) for task in ("gsm8k", "mmlu") for seed in MADE_SEEDS]


def _made_views(seed: int) -> Iterator[StepView]:
    """Yield steps that commit one position each, block by block, converging to one text."""
    random = np.random.default_rng(seed)
    alphabet = _alphabet()
    texts = np.array([[alphabet.index(x.replace(" ", "Ġ")) for x in text] for text in WRITTEN])
    masked = np.ones(SHAPE.length, dtype=np.bool_)
    for step in range(SHAPE.budget):
        block = step // SHAPE.steps_per_block
        wavers = random.random() < 0.6 - step / 15
        confidence = random.beta(2 + step / 2, 2, SHAPE.length).astype(np.float32)
        yield StepView(
            step=step + 1,
            block=block,
            token=texts[random.integers(2 + seed % 3) if wavers else seed % 3].astype(np.int32),
            confidence=fixed_point("confidence", confidence),
            gap=fixed_point("gap", confidence * 10),
            entropy=fixed_point("entropy", 1 - confidence),
            masked=masked.copy(),
        )
        masked[random.choice(np.flatnonzero(masked[: (block + 1) * SHAPE.block_length]))] = False


def _vocabulary() -> Vocabulary:
    """Make a vocabulary of bytes and an end token."""
    alphabet = {letter: i for i, letter in enumerate(_alphabet())}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    return Vocabulary(tokenizer.to_str(), [END])


def _alphabet() -> list[str]:
    """Characters that represent bytes in a byte-level tokenizer."""
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _decode(model: "_Model", shape: Shape, rule: Rule) -> "Decoded":
    from c4.decode.loop import decode

    return decode(model, PROMPT, shape, rule=rule)


class _Model:
    """A model without weights; all instances predict the same at the same pass."""

    mask_id = MASK
    shift = False

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def logits(
        self,
        ids: IntArray,
        start: int,
        *,
        positions: IntArray | None = None,  # noqa: ARG002 - required by the model interface
        attention: BoolArray | None = None,  # noqa: ARG002
    ) -> "Tensor":
        import torch

        logits = 3 * self.random.normal(size=(len(ids) - start, VOCABULARY))
        return torch.from_numpy(logits.astype(np.float32))

    def read(self, ids: IntArray, start: int) -> "Reading":
        return self.interpret(self.logits(ids, start))

    def interpret(self, logits: "Tensor") -> "Reading":
        from c4.models import read_logits

        return read_logits(logits, self.mask_id)
