"""Every commit rule against a plain transcription of its definition, ties included."""

import math

import numpy as np
import pytest
import torch
from conftest import save_llada
from hypothesis import given, settings
from hypothesis import strategies as st

from c4.decode.commits import Choice, RuleState
from c4.decode.forward import Cache, Forward
from c4.decode.loop import blocks_of, decode
from c4.decode.rules.cctc import CCTC
from c4.decode.rules.klass import KLASS
from c4.decode.rules.schedule import Schedule
from c4.decode.rules.slowfast import SlowFast
from c4.decode.rules.threshold import Threshold
from c4.decode.rules.wino import WINO, shadow_layout
from c4.errors import ConfigError
from c4.gates.steps import CellRecorder
from c4.models import Denoiser, find_checkpoint, load_model, read_logits
from c4.store.origins import Origin
from c4.tasks import Shape

MASK = 5
PROMPT = np.array([7, 8])


class Tabled:
    """A denoiser whose logits at every pass are in a table; behind the end, a shadow's."""

    mask_id = MASK
    shift = False

    def __init__(self, table, length):
        self.table = table  # (passes, L+B, V)
        self.length = length
        self.inputs = []
        self.visible = []  # generated positions that each pass was shown

    def logits(self, ids, start, *, positions=None, attention=None):
        rows = self.table[len(self.inputs)][: len(ids) - start].clone()
        seen = ids[start : start + self.length]
        hidden = self.inputs[-1][len(seen) :] if self.inputs else []
        self.visible.append(len(seen))
        self.inputs.append(np.concatenate([seen, hidden]).astype(np.int64))
        return rows

    def read(self, ids, start):
        return self.interpret(self.logits(ids, start))

    def interpret(self, logits):
        return read_logits(logits, self.mask_id)

    def reading(self, t):
        """Tokens and confidences of pass t, counted from 0, as lists."""
        reading = read_logits(self.table[t][: self.length].clone(), MASK)
        # In float64, where confidences are in the order of the odds.
        return reading.token.tolist(), (1 / (1 + reading.odds.astype(np.float64))).tolist()

    def last_tokens(self):
        """What each position predicted at the last pass that was shown it."""
        tokens = [None] * self.length
        for t, visible in enumerate(self.visible):
            tokens[:visible] = self.reading(t)[0][:visible]
        return tokens


@st.composite
def cases(draw):
    """A shape and predictions for it: many ties, many repetitions, now and then certainty.

    Mostly blocks with steps to spare, because what a rule remembers shows only over some steps.
    """
    block = draw(st.sampled_from([8, 6, 4, 3, 2, 1]))
    blocks = draw(st.integers(1, 3))
    per_block = draw(st.sampled_from([block, block, max(1, block - 1), max(1, block // 2), 1]))
    shape = Shape(length=block * blocks, budget=per_block * blocks, block_length=block)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    passes = shape.length + 1
    sharp = draw(st.sampled_from([6.0, 4.0, 2.0]))
    sure = draw(st.sampled_from([0.2, 0.5]))
    moving = draw(st.sampled_from([0.1, 0.4]))
    table = np.empty((passes, shape.length + block, 6), dtype=np.float32)
    row = predictions(rng, table.shape[1], sharp, sure)
    for t in range(passes):
        moves = rng.random(table.shape[1]) < moving
        row = np.where(moves[:, None], predictions(rng, len(row), sharp, sure), row)
        table[t] = row
    return shape, Tabled(torch.from_numpy(table), shape.length)


def predictions(rng, count, sharp, sure):
    """Logits of some positions, a share of them sure of one token."""
    logits = rng.choice([0.0, 0.0, 1.0], (count, 6))
    certain = np.flatnonzero(rng.random(count) < sure)
    logits[certain, rng.integers(0, MASK, len(certain))] = sharp
    return logits


def plain_decode(shape, tabled, policy):
    """Section 2's loop around a policy: what to write, on whose account, and what to take back."""
    x = [None] * shape.length
    origin, since = [None] * shape.length, [None] * shape.length
    passes, revoked, t = [], 0, 0
    for n in range(shape.blocks):
        block = range(n * shape.block_length, (n + 1) * shape.block_length)
        passes.append(0)
        state = {}
        while any(x[i] is None for i in block):
            token, confidence = tabled.reading(t)
            passes[-1] += 1
            masked = [i for i in block if x[i] is None]
            write, back = policy(state, t, passes[-1], n, block, masked, token, confidence, x)
            t += 1
            for i, who in write.items():
                assert x[i] is None
                x[i], origin[i], since[i] = token[i], who, t
            for i in back:
                x[i] = None
            revoked += len(back)
    return x, passes, revoked, origin, since


def top(masked, confidence, count):
    return sorted(masked, key=lambda i: (-confidence[i], i))[:count]


def by(origin, positions):
    return dict.fromkeys(positions, origin)


def scheduled(shape, s, masked, confidence):
    q, r = divmod(shape.block_length, shape.steps_per_block)
    return by(Origin.SCHEDULE, top(masked, confidence, q + (1 if s <= r else 0)))


def cctc_policy(shape, tau, hole_limit, confirm, not_last, stall_valve, last_step_valve):
    def policy(state, t, s, n, block, masked, token, confidence, x):
        scheduled_top = scheduled(shape, s, masked, confidence)
        if not_last and n == shape.blocks - 1:
            return scheduled_top, []
        ready = [i for i in masked if confidence[i] >= tau]
        holes = {i: sum(j < i and j not in ready for j in masked) for i in ready}
        core = [i for i in ready if holes[i] <= hole_limit]
        remembered = state.get("deferred", {})
        confirmed = [i for i in ready if i in remembered and remembered[i] == token[i]]
        state["deferred"] = {i: token[i] for i in ready if i not in core} if confirm else {}
        stalled = bool(ready) and not core and not confirmed
        state["stalled"] = state.get("stalled", 0) + 1 if stalled else 0
        opened = last_step_valve and s == shape.steps_per_block
        if stall_valve and state["stalled"] == 3:
            opened, state["stalled"] = True, 0
        # A position that several commit is on the account of the first of them: Eq. 6's order.
        write = scheduled_top | by(Origin.ACCEPTED, ready if opened else [])
        return write | by(Origin.CONFIRMED, confirmed) | by(Origin.CORE, core), []

    return policy


def threshold_policy(shape, tau):
    def policy(state, t, s, n, block, masked, token, confidence, x):
        sure = [i for i in masked if confidence[i] >= tau]
        if sure:
            return by(Origin.ACCEPTED, sure), []
        return by(Origin.SCHEDULE, top(masked, confidence, 1)), []

    return policy


def klass_policy(shape, tabled, tau, epsilon):
    def divergence(t, i):
        if t == 0:
            return math.inf
        now, before = (tabled.table[u][i].double().log_softmax(-1) for u in (t, t - 1))
        return float((now.exp() * (now - before)).sum())

    def policy(state, t, s, n, block, masked, token, confidence, x):
        ready = []
        if s >= 2:
            ready = [
                i
                for i in masked
                if confidence[i] > tau and divergence(t, i) < epsilon > divergence(t - 1, i)
            ]
        return by(Origin.ACCEPTED, ready) or scheduled(shape, s, masked, confidence), []

    return policy


def slowfast_policy(shape, explore=6, tau_span=0.3, tau=0.9):
    def fill(positions, confidence):
        sure = [i for i in positions if confidence[i] >= tau]
        if len(sure) >= 2:
            return by(Origin.ACCEPTED, sure)
        return by(Origin.SCHEDULE, top(positions, confidence, 1))

    def policy(state, t, s, n, block, masked, token, confidence, x):
        if not state:
            state.update(begin=block.start, passes=0, estimates=[], fixed=None)
        if state["passes"] == explore:
            end = state["fixed"]
            if end is None:
                end = sum(state["estimates"][-2:]) // len(state["estimates"][-2:])
            inside = [i for i in masked if state["begin"] <= i < end]
            if inside:
                return fill(inside, confidence), []
            state.update(begin=end, passes=0, estimates=[], fixed=None)
        state["passes"] += 1
        ahead = [i for i in masked if i >= state["begin"]]
        if state["fixed"] is None:
            seen = [i for i in ahead if confidence[i] >= tau_span]
            state["estimates"].append(max(seen) + 1 if seen else state["begin"] + 1)
            if len(state["estimates"]) >= 2:
                a, b = state["estimates"][-2:]
                if abs(a - b) / 2 < 1:
                    state["fixed"] = b
        return fill(ahead, confidence), []

    return policy


def wino_policy(shape, tabled, tau, tau_back):
    def policy(state, t, s, n, block, masked, token, confidence, x):
        most = min(max(int(0.7 * len(masked)), 5), 20)
        accepted = top([i for i in masked if confidence[i] > tau], confidence, most)
        write = by(Origin.ACCEPTED, accepted)
        if not accepted:
            accepted = top(masked, confidence, 1)
            write = by(Origin.SCHEDULE, accepted)
        last, state["accepted"] = state.get("accepted", 0), len(accepted)
        back = []
        if len(accepted) > 1:
            shadow = tabled.table[t][shape.length :].softmax(-1)
            doubt = {i: float(shadow[i - block.start, x[i]]) for i in block if x[i] is not None}
            doubtful = sorted((p, i) for i, p in doubt.items() if p < tau_back)
            back = [i for _, i in doubtful[: max(0, last - 1)]]
        return write, back

    return policy


def assert_same(rule, shape, tabled, policy):
    decoded = decode(tabled, PROMPT, shape, rule=rule)
    x, passes, revoked, origin, since = plain_decode(shape, tabled, policy)
    assert decoded.ids.tolist() == x
    assert decoded.block_steps.tolist() == passes
    assert decoded.steps == sum(passes)
    assert decoded.revoked == revoked
    assert decoded.origin.tolist() == origin
    assert decoded.commit_step.tolist() == since


@settings(max_examples=500)  # the valves open seldom
@given(
    cases(),
    st.sampled_from([0.5, 0.8]),
    st.sampled_from([0, 1, 2, math.inf]),
    *[st.booleans()] * 4,
)
def test_cctc_is_equations_5_and_6(case, tau, holes, confirm, not_last, stall, last_step):
    shape, tabled = case
    rule = CCTC(
        tau=tau,
        H=holes,
        confirm=confirm,
        blocks="not-last" if not_last else "all",
        stall_valve=stall,
        last_step_valve=last_step,
    )
    policy = cctc_policy(shape, tau, holes, confirm, not_last, stall, last_step)
    assert_same(rule, shape, tabled, policy)


@given(cases(), st.sampled_from([0.5, 0.9]))
def test_the_threshold_rule_is_its_definition(case, tau):
    shape, tabled = case
    assert_same(Threshold(tau=tau), shape, tabled, threshold_policy(shape, tau))


@given(cases(), st.sampled_from([0.3, 0.6]), st.sampled_from([0.01, 0.5]))
def test_klass_is_its_definition(case, tau, epsilon):
    shape, tabled = case
    rule = KLASS(tau=tau, epsilon=epsilon)
    assert_same(rule, shape, tabled, klass_policy(shape, tabled, tau, epsilon))


@given(cases(), st.sampled_from([1, 3, 6]))
def test_slowfast_is_its_definition(case, explore):
    shape, tabled = case
    rule = SlowFast(explore=explore)
    assert_same(rule, shape, tabled, slowfast_policy(shape, explore))


@given(cases(), st.sampled_from([0.2, 0.5]), st.sampled_from([0.3, 0.9]))
def test_wino_is_its_definition(case, tau, tau_back):
    shape, tabled = case
    rule = WINO(tau=tau, tau_back=tau_back)
    assert_same(rule, shape, tabled, wino_policy(shape, tabled, tau, tau_back))


RULES = [
    Schedule(),
    CCTC(tau=0.5),
    CCTC(tau=0.5, H=0, confirm=False, blocks="0,2"),
    Threshold(tau=0.5),
    KLASS(tau=0.4, epsilon=0.1),
    SlowFast(tau=0.5),
    WINO(tau=0.3),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=40)
@given(case=cases())
def test_blocks_end_full_in_turn_and_only_wino_takes_anything_back(rule, case):
    shape, tabled = case
    recorder = CellRecorder()
    decoded = decode(tabled, PROMPT, shape, rule=rule, observer=recorder)
    masked = recorder.cells().masked
    assert MASK not in decoded.ids
    blocks = np.repeat(np.arange(shape.blocks), decoded.block_steps)
    assert len(blocks) == len(masked) == decoded.steps
    for step, block in enumerate(blocks):
        start, stop = block * shape.block_length, (block + 1) * shape.block_length
        assert not masked[step, :start].any()
        assert masked[step, start:stop].any()
        assert masked[step, stop:].all()
        np.testing.assert_array_equal(masked[step], tabled.inputs[step] == MASK)
    came_back = (masked[1:] & ~masked[:-1]).sum()
    assert decoded.revoked == came_back
    if not isinstance(rule, WINO):
        assert decoded.revoked == 0
    assert (decoded.block_steps <= shape.block_length).all()
    assert (decoded.commit_step >= 1).all()
    assert not (decoded.origin == Origin.FILL).any()
    tokens = recorder.cells().token
    standing = tokens[decoded.commit_step - 1, np.arange(shape.length)]
    np.testing.assert_array_equal(standing, decoded.ids)


@given(cases(), st.sampled_from([0, 1, math.inf]), st.booleans())
def test_cctc_never_takes_more_steps_than_the_schedule(case, holes, confirm):
    shape, tabled = case
    decoded = decode(tabled, PROMPT, shape, rule=CCTC(tau=0.5, H=holes, confirm=confirm))
    assert (decoded.block_steps <= shape.steps_per_block).all()


@given(cases(), st.sampled_from([0.5, 0.9]))
def test_cctc_without_a_limit_or_a_second_look_is_the_threshold_rule(case, tau):
    shape, tabled = case
    shape = Shape(length=shape.length, budget=shape.length, block_length=shape.block_length)
    without = decode(tabled, PROMPT, shape, rule=CCTC(tau=tau, H=math.inf, confirm=False))
    again = Tabled(tabled.table, shape.length)
    plain = decode(again, PROMPT, shape, rule=Threshold(tau=tau))
    assert without.ids.tolist() == plain.ids.tolist()
    assert without.block_steps.tolist() == plain.block_steps.tolist()


class Counting(Denoiser):
    """A denoiser that says how many rows its recalled passes computed."""

    def __init__(self, denoiser, *, shift=False):
        super().__init__(denoiser.model, mask_id=denoiser.mask_id, shift=shift)
        self.widths = []

    def recall(self, ids, memory, **layout):
        output = super().recall(ids, memory, **layout)
        self.widths.append(len(output))
        return output


@pytest.fixture(scope="module")
def one_layer(tmp_path_factory):
    """What a position of the only layer shows to others depends on its own token alone."""
    folder = save_llada(tmp_path_factory.mktemp("models") / "one-layer", n_layers=1)
    return load_model(find_checkpoint(str(folder))).denoiser


CACHED_RULES = [
    Schedule(),
    CCTC(tau=0.3),
    Threshold(tau=0.3),
    KLASS(tau=0.2, epsilon=0.5),
    SlowFast(explore=2, tau=0.3, tau_span=0.3),
    WINO(tau=0.2, tau_back=0.5),
]


@pytest.mark.parametrize("cache", [Cache.PREFIX, Cache.DUAL])
@pytest.mark.parametrize("rule", CACHED_RULES, ids=lambda rule: type(rule).__name__)
def test_caches_are_exact_in_one_layer_under_every_rule(one_layer, rule, cache):
    denoiser = Counting(one_layer)
    shape = Shape(length=24, budget=24, block_length=6)
    prompt = np.arange(40, 50)
    plain = decode(denoiser, prompt, shape, rule=rule)
    assert not denoiser.widths
    cached = decode(denoiser, prompt, shape, rule=rule, forward=Forward(cache))
    assert cached.ids.tolist() == plain.ids.tolist()
    assert cached.commit_step.tolist() == plain.commit_step.tolist()
    assert len(denoiser.widths) == cached.steps - shape.blocks
    shadow = shape.block_length if isinstance(rule, WINO) else 0
    blocks = [i for i, passes in enumerate(cached.block_steps) for _ in range(passes - 1)]
    behind = [
        0 if cache is Cache.DUAL else shape.length - (i + 1) * shape.block_length for i in blocks
    ]
    most = [shape.block_length + more + shadow for more in behind]
    if isinstance(rule, SlowFast):  # which hides what lies behind its span
        assert all(width <= limit for width, limit in zip(denoiser.widths, most, strict=True))
    else:
        assert denoiser.widths == most


@pytest.mark.parametrize("cache", [Cache.PREFIX, Cache.DUAL])
def test_a_shifted_model_s_full_pass_commits_the_block_s_first_position_alone(one_layer, cache):
    denoiser = Counting(one_layer, shift=True)
    shape = Shape(length=12, budget=12, block_length=4)
    decoded = decode(
        denoiser, np.arange(40, 50), shape, rule=Threshold(tau=0.0), forward=Forward(cache)
    )
    assert decoded.block_steps.tolist() == [2, 2, 2]
    assert decoded.commit_step.reshape(3, 4).tolist() == [[1, 2, 2, 2], [3, 4, 4, 4], [5, 6, 6, 6]]


@given(cases(), st.integers(1, 12))
def test_a_gate_changes_nothing_before_it_fires(case, exit_at):
    shape, tabled = case

    class At:
        def fires(self, view):
            return view.step == exit_at

    for rule in RULES:
        free, gated = Tabled(tabled.table, shape.length), Tabled(tabled.table, shape.length)
        whole = decode(free, PROMPT, shape, rule=rule)
        left = decode(gated, PROMPT, shape, rule=rule, gate=At())
        steps = min(exit_at, whole.steps)
        assert left.steps == steps
        assert left.exited == (exit_at <= whole.steps)
        for a, b in zip(free.inputs[:steps], gated.inputs, strict=True):
            np.testing.assert_array_equal(a, b)
        if left.exited:
            buffer = gated.inputs[-1]
            filled = np.where(buffer == MASK, gated.last_tokens(), buffer)
            assert left.ids.tolist() == filled.tolist()
            np.testing.assert_array_equal(left.origin == Origin.FILL, buffer == MASK)


def script(*steps):
    """Predictions by hand, (token, logit) for each position; the last step repeats."""
    length = len(steps[0])
    table = torch.zeros(length, 2 * length, 6)
    for t in range(length):
        for i, (token, logit) in enumerate(steps[min(t, len(steps) - 1)]):
            table[t, i, token] = logit
    return Tabled(table, length)


def test_a_deferred_position_is_confirmed_only_by_the_same_token():
    unsure, sure = 1.0, 9.0
    step = [(1, unsure), (2, unsure), (3, sure), (4, sure - 1)]
    changed = [(1, unsure), (2, unsure), (3, sure), (0, sure)]
    shape = Shape(length=4, budget=4, block_length=4)
    kept = decode(script(step), PROMPT, shape, rule=CCTC(H=0))
    moved = decode(script(step, changed), PROMPT, shape, rule=CCTC(H=0))
    # Step 1: the schedule takes 2, position 3 is deferred. Step 2 confirms it, or defers it anew.
    assert (kept.commit_step[3], kept.origin[3]) == (2, Origin.CONFIRMED)
    assert kept.commit_step[2] == 1
    assert kept.origin[2] == Origin.SCHEDULE
    assert moved.origin[3] == Origin.SCHEDULE
    assert moved.ids[3] == 0


def test_the_core_stops_at_the_hole_after_h():
    unsure, sure = 1.0, 9.0
    step = [(1, sure), (2, unsure), (3, sure), (4, unsure)]
    late = [(1, sure), (2, unsure), (3, sure), (4, sure)]
    shape = Shape(length=4, budget=4, block_length=4)
    decoded = decode(script(step, late), PROMPT, shape, rule=CCTC(H=1))
    assert decoded.origin.tolist()[:3:2] == [Origin.CORE, Origin.CORE]
    strict = decode(script(step, late), PROMPT, shape, rule=CCTC(H=0, confirm=False))
    assert strict.commit_step.tolist()[0] == 1
    assert strict.commit_step.tolist()[2] == 2  # as the schedule's, behind the hole


@pytest.mark.parametrize(
    ("budget", "valve", "steps", "accepted"),
    [
        (6, {"stall_valve": True}, [4, 1, 2, 3, 3, 3], 3),  # after three steps without a core
        (6, {"stall_valve": False}, [6, 1, 2, 3, 4, 5], 0),
        (2, {"last_step_valve": True}, [2, 1, 1, 1, 2, 2], 2),  # on its own account
        (2, {"last_step_valve": False}, [2, 1, 1, 1, 2, 2], 0),
    ],
)
def test_a_valve_commits_all_that_is_ready(budget, valve, steps, accepted):
    """Behind the hole at 0 nothing is core; the schedule goes from the left."""
    step = [(0, 1.0), *[(token, 9.0) for token in (1, 2, 3, 4, 0)]]
    shape = Shape(length=6, budget=budget, block_length=6)
    decoded = decode(script(step), PROMPT, shape, rule=CCTC(H=0, confirm=False, **valve))
    assert decoded.commit_step.tolist() == steps
    scheduled = [Origin.SCHEDULE] * (6 - accepted)
    assert decoded.origin.tolist() == scheduled + [Origin.ACCEPTED] * accepted


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CCTC(tau=1.5), "CCTC takes tau from 0 to 1, not 1.5"),
        (lambda: CCTC(H="many"), "CCTC takes H at least 0, not many"),
        (lambda: CCTC(blocks="some"), "CCTC takes blocks all, not-last, or numbers"),
        (lambda: KLASS(epsilon=-1), "KLASS takes epsilon at least 0"),
        (lambda: SlowFast(explore=0), "SlowFast takes explore a whole number of at least 1, not 0"),
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_rule_that_commits_nothing_is_an_error_and_not_an_endless_loop():
    class Idle(RuleState):
        def choose(self, step, reading, masked):
            return Choice(np.empty(0, dtype=np.int64), Origin.ACCEPTED)

    class Lazy:
        def start(self):
            return Idle()

    tabled = Tabled(torch.zeros(2, 4, 6), 4)
    with pytest.raises(ConfigError, match="commits nothing at step 1"):
        decode(tabled, PROMPT, Shape(length=4, budget=4, block_length=4), rule=Lazy())


@pytest.fixture(scope="module")
def denoiser(random_llada):
    return load_model(find_checkpoint(str(random_llada))).denoiser


def test_a_shadow_row_sees_everything_but_its_twin_and_nobody_sees_it():
    positions, attention = shadow_layout(20, np.arange(8, 12))
    assert positions.tolist() == [*range(20), 8, 9, 10, 11]
    for query in range(24):
        unseen = range(20, 24) if query < 20 else [query - 20 + 8]
        assert np.flatnonzero(~attention[query]).tolist() == list(unseen)


def test_wino_on_a_model_reads_what_a_plain_pass_reads(denoiser):
    shape = Shape(length=8, budget=8, block_length=4)
    ids = np.random.default_rng(2).integers(0, 256, 12)
    ids[[6, 7, 9, 10, 11]] = denoiser.mask_id
    commits = WINO().start()
    commits.enter(next(blocks_of(shape)))
    got, plain = commits.read(denoiser, ids, 4), denoiser.read(ids, 4)
    np.testing.assert_array_equal(got.token, plain.token)
    np.testing.assert_allclose(got.confidence, plain.confidence, rtol=1e-4)


def test_wino_refuses_a_model_that_predicts_from_the_position_before():
    tabled = Tabled(torch.zeros(2, 8, 6), 4)
    tabled.shift = True
    with pytest.raises(ConfigError, match="wino cannot run on a model that predicts"):
        decode(tabled, PROMPT, Shape(length=4, budget=4, block_length=4), rule=WINO())
