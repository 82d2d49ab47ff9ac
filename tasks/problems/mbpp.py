"""MBPP's kind: a function described in words, named by the assertion that it must pass."""

import random

from c4.tasks.problems._functions import Kind, assertion, draw_cases, draw_constants
from c4.tasks.problems._problem import Problem

PARAMETERS = {"n": "n", "s": "n", "l": "items", "t": "text"}

KINDS = (
    Kind("rectangle_area get_area area", "nn", "find the area of a rectangle",
         "return a * b", lambda o, a, b: a * b),
    Kind("rectangle_border perimeter around", "nn", "find the perimeter of a rectangle",
         "return 2 * (a + b)", lambda o, a, b: 2 * (a + b)),
    Kind("add_both join_sum sum_more", "nn", "add two numbers and {m}",
         "return a + b + {m}", lambda o, a, b: a + b + o.m),
    Kind("larger_times max_times best_of", "nn", "multiply the larger of two numbers by {k}",
         "return max(a, b) * {k}", lambda o, a, b: max(a, b) * o.k),
    Kind("difference distance apart", "nn", "find the difference of two numbers",
         "return abs(a - b)", lambda o, a, b: abs(a - b)),
    Kind("product_plus times_plus combine", "nn", "multiply two numbers and add {k}",
         "return a * b + {k}", lambda o, a, b: a * b + o.k),
    Kind("cube third_power cubed", "n", "find the cube of a number",
         "return n ** 3", lambda o, n: n**3),
    Kind("digit_sum add_digits digits", "n", "find the sum of the digits of a number",
         "return sum(int(d) for d in str(n))", lambda o, n: sum(map(int, str(n)))),
    Kind("multiples first_multiples table", "s", "list the first n multiples of {k}",
         "return [{k} * i for i in range(1, n + 1)]",
         lambda o, n: [o.k * i for i in range(1, n + 1)]),
    Kind("count_down backwards steps", "s", "count down from n to 1",
         "return list(range(n, 0, -1))", lambda o, n: list(range(n, 0, -1))),
    Kind("parity even_odd kind_of", "n", "tell whether a number is even or odd",
         "if n % 2 == 0:\n    return 'even'\nreturn 'odd'",
         lambda o, n: "odd" if n % 2 else "even"),
    Kind("remove_all delete clean", "l", "remove every {k} from a list",
         "return [v for v in items if v != {k}]", lambda o, x: [v for v in x if v != o.k]),
    Kind("put_last append_to extend", "l", "put {m} at the end of a list",
         "return items + [{m}]", lambda o, x: [*x, o.m]),
    Kind("put_first prepend in_front", "l", "put {m} at the start of a list",
         "return [{m}] + items", lambda o, x: [o.m, *x]),
    Kind("has_item check_item member", "l", "check whether a list holds {m}",
         "return {m} in items", lambda o, x: o.m in x),
    Kind("square_sum sum_squares squares", "l", "find the sum of the squares of a list",
         "return sum(v * v for v in items)", lambda o, x: sum(v * v for v in x)),
    Kind("second_largest runner_up next_best", "l", "find the second largest item of a list",
         "return sorted(items)[-2]", lambda o, x: sorted(x)[-2]),
    Kind("even_sum sum_even add_even", "l", "find the sum of the even items of a list",
         "return sum(v for v in items if v % 2 == 0)",
         lambda o, x: sum(v for v in x if v % 2 == 0)),
    Kind("divisible_sum sum_by add_by", "l", "find the sum of the items divisible by {k}",
         "return sum(v for v in items if v % {k} == 0)",
         lambda o, x: sum(v for v in x if v % o.k == 0)),
    Kind("ends both_ends edges", "l", "add the first and the last item of a list",
         "return items[0] + items[-1]", lambda o, x: x[0] + x[-1]),
    Kind("bound clip trim", "l", "lower the items of a list to {m} at most",
         "return [min(v, {m}) for v in items]", lambda o, x: [min(v, o.m) for v in x]),
    Kind("common shared overlap", "ll", "find the items of one list that are in another",
         "return [v for v in a if v in b]", lambda o, a, b: [v for v in a if v in b]),
    Kind("only_first missing unique", "ll", "find the items of one list that are not in another",
         "return [v for v in a if v not in b]", lambda o, a, b: [v for v in a if v not in b]),
    Kind("pair_sums add_lists sum_lists", "ll", "add two lists item by item",
         "return [x + y for x, y in zip(a, b)]",
         lambda o, a, b: [x + y for x, y in zip(a, b, strict=False)]),
    Kind("starts_with check_start begins", "t", "check whether a string starts with 's'",
         "return text.startswith('s')", lambda o, t: t.startswith("s")),
    Kind("split_at cut_at pieces", "t", "split a string at each 'e'",
         "return text.split('e')", lambda o, t: t.split("e")),
    Kind("add_end suffix attach", "t", "add {k} stars to the end of a string",
         "return text + '*' * {k}", lambda o, t: t + "*" * o.k),
    Kind("length_times text_size weight", "t", "multiply the length of a string by {k}",
         "return len(text) * {k}", lambda o, t: len(t) * o.k),
    Kind("double_letters twice stretch", "t", "double every letter of a string",
         "return ''.join(c * 2 for c in text)", lambda o, t: "".join(c * 2 for c in t)),
    Kind("join_with connect link", "tt", "join two strings with ' and ' between them",
         "return a + ' and ' + b", lambda o, a, b: a + " and " + b),
)  # fmt: skip


def generate(rng: random.Random) -> Problem:
    number = rng.randrange(len(KINDS))
    kind = KINDS[number]
    constants = draw_constants(rng)
    lines = kind.body.format(**vars(constants)).splitlines()
    code = "\n    ".join([f"def {kind.name}({PARAMETERS.get(kind.takes, 'a, b')}):", *lines])
    cases = draw_cases(rng, kind, constants, 3)
    row = {
        "source_file": "embedded",
        "task_id": number,
        "prompt": f"Write a function to {kind.text.format(**vars(constants))}.",
        "code": code,
        "test_imports": [],
        "test_list": [assertion(kind.name, *case) for case in cases],
    }
    used = constants.used(kind)
    # A function without constants can be new only by its example.
    example = (kind.words, *map(repr, cases[0][0]))
    combination = (kind.words, kind.name, *used) if used else example
    return Problem(row, code, (combination,))
