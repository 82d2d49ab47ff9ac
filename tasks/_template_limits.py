"""Jinja's sandbox with a limit on the work of one rendering, so that no template runs for ever."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView
from contextvars import ContextVar
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

MOST_WORK = 10_000_000
"""Characters that one rendering may handle, all of its operations taken together."""
ITEM = 10
"""Work of one item of a list or one turn of a loop, in characters."""
CALL = 100
"""Work of one call of a filter, a method or a macro, in characters."""
MOST_BITS = 100_000
"""Size of the largest number that is computed."""
GROWING = frozenset(
    [
        "batch",
        "center",
        "expandtabs",
        "indent",
        "join",
        "ljust",
        "rjust",
        "slice",
        "to_bytes",
        "translate",
        "wordwrap",
        "zfill",
    ]
)
"""Filters and methods whose result is at most their value's size times that of an argument."""
REMOVED = ("pprint", "urlize", "xmlattr")
"""Filters whose results have no simple bound, and which no prompt needs."""
WIDE = re.compile(r"\d{5}|%[^a-zA-Z%]*\*|\{[^{}]*:[^{}]*\{")
"""Formats that are wide, or as wide as a value says."""
SELF = "__self"
"""What templates call a row's field `self`, a word that Jinja keeps for itself."""

_LEFT: ContextVar[list[int]] = ContextVar("left")
"""Work that the current rendering has left, as the only item of a list."""


def start_rendering() -> None:
    """Allow this thread the work of one more rendering."""
    _LEFT.set([MOST_WORK])


def charge(work: int) -> None:
    """Take work off what the current rendering has left."""
    left = _LEFT.get()
    left[0] -= work
    if left[0] < 0:
        raise SecurityError(f"a template may handle {MOST_WORK:,} characters")


def size(value: Any) -> int:
    """Work of going through a value, counted only until it is too much."""
    total, waiting = 0, [value]
    while waiting and total <= MOST_WORK:
        part = waiting.pop()
        parts = _parts(part)
        waiting.extend(parts)
        total += 1 + ITEM * len(parts) + _length(part)
    return total


def _length(value: Any) -> int:
    if isinstance(value, int):
        return value.bit_length() // 8
    return len(value) if isinstance(value, str | bytes | range) else 0


def _parts(value: Any) -> Any:
    """The values that a value holds."""
    if isinstance(value, str | int):
        return ()
    if isinstance(value, list | tuple | set | frozenset | MappingView):
        return value
    if isinstance(value, Namespace):
        raise SecurityError("a namespace has no text of its own; write one of its values")
    return [*value.keys(), *value.values()] if isinstance(value, Mapping) else ()


def _require_bounded(name: str, value: Any, given: list[Any]) -> None:
    """Refuse a filter or a method whose result could be too large to be made at all."""
    if name in ("format", "format_map", "%") and isinstance(value, str | bytes):
        _require_narrow(value)
    if name == "tojson" and given:
        raise SecurityError("tojson is rendered without an indent")
    if name == "sum" and any(isinstance(start, list | tuple) for start in given):
        raise SecurityError("only numbers are summed up")
    if name == "replace" and len(given) > 1:
        made = str(value).count(str(given[0])) * size(given[1])
    elif name in GROWING:
        made = size(value) * max(map(_times, given), default=1)
    else:
        return
    if made > MOST_WORK:
        raise SecurityError(f"{name} may make {MOST_WORK:,} characters")


def _require_narrow(pattern: str | bytes) -> None:
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    if WIDE.search(text):
        raise SecurityError("a format has a width of at most four digits, written in it")


def _limited(name: str, function: Any) -> Callable[..., Any]:
    """A filter or test that charges for what it is given and what it makes."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def limited(*args: Any, **options: Any) -> Any:
        value, *given = [*args[first:], *options.values()]
        charge(CALL + size(value) + size(given))
        _require_bounded(name, value, given)
        made = function(*args, **options)
        if isinstance(made, Iterator):  # as a list, so that its size is known from now on
            return list(_counted(made))
        charge(size(made))
        return made

    return limited


def _charged(value: Any) -> Any:
    charge(size(value))
    return value


def _counted(items: Iterable[Any], text: int = 0) -> Iterator[Any]:
    """The items of a loop, each charged as a turn that writes so much text."""
    for item in items:
        charge(ITEM + text)
        yield item


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which every loop, call and operation is charged to the rendering."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_charged)
        del self.globals["lipsum"]
        for table in (self.filters, self.tests):
            table.update({name: _limited(name, made) for name, made in table.items()})
        for name in REMOVED:
            del self.filters[name]
        self.filters |= {"_charged": _charged, "_counted": _counted}

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        charge(ITEM + size(left) + size(right))
        _require_bounded(operator, left, [right])
        if operator in ("*", "**"):
            _require_small(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Any, __obj: Any, *args: Any, **options: Any) -> Any:  # noqa: N805
        method = getattr(__obj, "__wrapped__", __obj)
        value, given = getattr(method, "__self__", None), [*args, *options.values()]
        charge(CALL + size(value) + size(given))
        _require_bounded(getattr(method, "__name__", ""), value, given)
        made = super().call(__context, __obj, *args, **options)
        charge(size(made) if not isinstance(made, Namespace) else 0)
        return made

    def _generate(self, source: nodes.Template, *args: Any, **options: Any) -> str:
        """Have loops counted and operands charged, before the template becomes code."""
        for node in list(source.find_all(nodes.Node)):
            _meter(node)
        source.set_environment(self)
        return super()._generate(source, *args, **options)


def _require_small(operator: str, left: Any, right: Any) -> None:
    """Refuse to multiply texts and numbers without end."""
    bits = [one.bit_length() if isinstance(one, int) else 0 for one in (left, right)]
    if operator == "**":
        if not (isinstance(right, int) and abs(right) <= 100):
            raise SecurityError("exponents of at most 100 are computed")
        made = bits[0] * abs(right)
    elif isinstance(left, int | float) and isinstance(right, int | float):
        made = sum(bits)
    else:
        made = 0
        charge(_times(left) * _times(right))
    if made > MOST_BITS:
        raise SecurityError(f"numbers of at most {MOST_BITS:,} bits are computed")


def _times(value: Any) -> int:
    """How much larger an operation makes its other operand with this one."""
    return abs(value) if isinstance(value, int) else size(value)


def _meter(node: nodes.Node) -> None:
    """Wrap what a node takes in filters that charge for it."""
    if isinstance(node, nodes.Name) and node.name == "self":
        node.name = SELF
    elif isinstance(node, nodes.Include | nodes.Import | nodes.FromImport | nodes.Extends):
        raise TemplateSyntaxError("a template stands alone, without other files", node.lineno)
    elif isinstance(node, nodes.For):
        if node.recursive:
            raise TemplateSyntaxError("recursive loops are not rendered", node.lineno)
        text = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        node.iter = _filtered("_counted", node.iter, nodes.Const(text))
    elif isinstance(node, nodes.Concat):
        node.nodes = [_filtered("_charged", one) for one in node.nodes]
    elif isinstance(node, nodes.Compare | nodes.Operand):
        node.expr = _filtered("_charged", node.expr)
    elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        node.node = _filtered("_charged", node.node)


def _filtered(name: str, value: nodes.Node, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(value, name, list(args), [], None, None, lineno=value.lineno)
