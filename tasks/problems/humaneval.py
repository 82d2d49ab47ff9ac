"""HumanEval's kind: a signature and a docstring; the function is to be written."""

import random

from c4.tasks.problems._functions import Kind, assertion, draw_cases, draw_constants
from c4.tasks.problems._problem import Problem

PARAMETERS = {
    "n": ("x", "n", "number", "value", "size", "count"),
    "l": ("numbers", "values", "items", "nums", "marks", "scores"),
    "t": ("text", "word", "line", "name", "title", "phrase"),
}

KINDS = (
    Kind("scale shift linear", "n", "Return {x} times {k}, plus {m}.",
         "return {x} * {k} + {m}", lambda o, x: x * o.k + o.m),
    Kind("add plus more", "n", "Return {x} plus {m}.",
         "return {x} + {m}", lambda o, x: x + o.m),
    Kind("square power grow", "n", "Return the square of {x}, plus {k}.",
         "return {x} * {x} + {k}", lambda o, x: x * x + o.k),
    Kind("rest modulo remainder", "n", "Return the remainder of {x} divided by {k}.",
         "return {x} % {k}", lambda o, x: x % o.k),
    Kind("fits divides multiple", "n", "Return True if {x} is a multiple of {k}.",
         "return {x} % {k} == 0", lambda o, x: x % o.k == 0),
    Kind("inside between within", "n", "Return True if {x} is from {k} to {m}.",
         "return {k} <= {x} <= {m}", lambda o, x: o.k <= x <= o.m),
    Kind("cap limit at_most", "n", "Return {x}, but at most {m}.",
         "return min({x}, {m})", lambda o, x: min(x, o.m)),
    Kind("lift raise_to at_least", "n", "Return {x}, but at least {m}.",
         "return max({x}, {m})", lambda o, x: max(x, o.m)),
    Kind("price discount reduce", "n",
         "If {x} is greater than {m}, return {x} minus {k}. Otherwise return {x}.",
         "if {x} > {m}:\n    return {x} - {k}\nreturn {x}",
         lambda o, x: x - o.k if x > o.m else x),
    Kind("bonus boost reward", "n",
         "If {x} is less than {m}, return {x} plus {k}. Otherwise return {x}.",
         "if {x} < {m}:\n    return {x} + {k}\nreturn {x}",
         lambda o, x: x + o.k if x < o.m else x),
    Kind("label name_size describe", "n",
         "Return 'big' if {x} is greater than {m}. Otherwise return 'small'.",
         "if {x} > {m}:\n    return 'big'\nreturn 'small'",
         lambda o, x: "big" if x > o.m else "small"),
    Kind("add_up total_to climb", "n", "Return the sum of the numbers from {k} to {x}.",
         "return sum(range({k}, {x} + 1))", lambda o, x: sum(range(o.k, x + 1))),
    Kind("keep_big above larger", "l", "Return the {x} greater than {m}.",
         "return [v for v in {x} if v > {m}]", lambda o, x: [v for v in x if v > o.m]),
    Kind("keep_small below smaller", "l", "Return the {x} less than {m}.",
         "return [v for v in {x} if v < {m}]", lambda o, x: [v for v in x if v < o.m]),
    Kind("keep_multiples pick choose", "l", "Return the {x} that are multiples of {k}.",
         "return [v for v in {x} if v % {k} == 0]",
         lambda o, x: [v for v in x if v % o.k == 0]),
    Kind("add_all move_all raise_all", "l", "Add {m} to each of the {x}.",
         "return [v + {m} for v in {x}]", lambda o, x: [v + o.m for v in x]),
    Kind("times_all scale_all grow_all", "l", "Multiply each of the {x} by {k}.",
         "return [v * {k} for v in {x}]", lambda o, x: [v * o.k for v in x]),
    Kind("change swap_out replace", "l", "Replace each {k} in {x} by {m}.",
         "return [{m} if v == {k} else v for v in {x}]",
         lambda o, x: [o.m if v == o.k else v for v in x]),
    Kind("count_big how_many tall", "l", "Count the {x} greater than {m}.",
         "return len([v for v in {x} if v > {m}])", lambda o, x: sum(v > o.m for v in x)),
    Kind("count_equal times_seen same", "l", "Count how often {k} occurs in {x}.",
         "return {x}.count({k})", lambda o, x: x.count(o.k)),
    Kind("sum_big add_large total_big", "l", "Return the sum of the {x} greater than {m}.",
         "return sum(v for v in {x} if v > {m})", lambda o, x: sum(v for v in x if v > o.m)),
    Kind("sum_times total weigh", "l", "Return the sum of the {x}, times {k}.",
         "return sum({x}) * {k}", lambda o, x: sum(x) * o.k),
    Kind("top highest peak", "l", "Return the largest of the {x}, plus {k}.",
         "return max({x}) + {k}", lambda o, x: max(x) + o.k),
    Kind("low lowest least", "l", "Return the smallest of the {x}, plus {k}.",
         "return min({x}) + {k}", lambda o, x: min(x) + o.k),
    Kind("any_big has_big exceeds", "l", "Return True if any of the {x} is greater than {m}.",
         "return max({x}) > {m}", lambda o, x: max(x) > o.m),
    Kind("spread width gap", "l", "Return the largest of the {x} minus the smallest.",
         "return max({x}) - min({x})", lambda o, x: max(x) - min(x)),
    Kind("sort order arrange", "l", "Return the {x} from smallest to largest.",
         "return sorted({x})", lambda o, x: sorted(x)),
    Kind("repeat again copy", "t", "Return {x} repeated {k} times.",
         "return {x} * {k}", lambda o, x: x * o.k),
    Kind("start head first", "t", "Return the first {k} letters of {x}.",
         "return {x}[:{k}]", lambda o, x: x[: o.k]),
    Kind("longer is_long exceeds_size", "t", "Return True if {x} has more than {k} letters.",
         "return len({x}) > {k}", lambda o, x: len(x) > o.k),
    Kind("upper loud shout", "t", "Return the first {k} letters of {x} in upper case.",
         "return {x}[:{k}].upper()", lambda o, x: x[: o.k].upper()),
    Kind("reverse turn backward", "t", "Return {x} reversed.",
         "return {x}[::-1]", lambda o, x: x[::-1]),
    Kind("size_plus longer_by add_length", "t", "Return the length of {x}, plus {m}.",
         "return len({x}) + {m}", lambda o, x: len(x) + o.m),
    Kind("tail last_part final", "t", "Return the last {k} letters of {x}.",
         "return {x}[-{k}:]", lambda o, x: x[-o.k :]),
    Kind("skip cut_head later", "t", "Return {x} without the first {k} letters.",
         "return {x}[{k}:]", lambda o, x: x[o.k :]),
    Kind("has_size is_size fits_size", "t", "Return True if {x} has {k} letters.",
         "return len({x}) == {k}", lambda o, x: len(x) == o.k),
)  # fmt: skip


def generate(rng: random.Random) -> Problem:
    number = rng.randrange(len(KINDS))
    kind = KINDS[number]
    constants = draw_constants(rng)
    parameter = rng.choice(PARAMETERS[kind.takes])
    words = {"x": parameter, **vars(constants)}
    head = f"def {kind.name}({parameter}):\n"
    body = "".join(f"    {line}\n" for line in kind.body.format(**words).splitlines())
    cases = draw_cases(rng, kind, constants, 6)
    asserts = [f"    {assertion('candidate', *case)}\n" for case in cases]
    row = {
        "task_id": f"HumanEval/{number}",
        "prompt": f'{head}    """{kind.text.format(**words)}"""\n',
        "canonical_solution": body,
        "test": "def check(candidate):\n" + "".join(asserts),
        "entry_point": kind.name,
    }
    combination = (kind.words, kind.name, parameter, *constants.used(kind))
    return Problem(row, (head + body).rstrip(), (combination,))
