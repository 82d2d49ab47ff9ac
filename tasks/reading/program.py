"""The careful reading of programs: extract the requested function from a model's answer.

Wrappings are removed line by line; then Python's parser is run, a few times at most, and each error
tells which line is not code. Time is linear in the text.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from c4.tasks.reading.plain import BROKEN, TOP_LEVEL, normal_code, parsed, signature_end
from c4.tasks.task import Candidate, Example

MOST_PARSES = 14
"""Maximum number of parses of one answer."""
LONGEST = 30_000
"""Maximum characters of an answer that are read; no benchmark's program comes near it."""
MOST_PARSED = 150_000
"""Maximum characters that the parser gets for one answer, over all parses."""
DEEPEST = 100
"""Maximum open brackets; the parser is very slow on more, and no program has that many."""

# -- What a wrapping looks like ----------------------------------------------------------------

# Repeats are possessive (`++`), so no text makes these patterns backtrack over many splits.
TAG = (
    r"(?<!return )(?<![=(,+])(?<![=(,+] )\[/?(?:BEGIN|DONE|PYTHON|CODE|ANSWER|SOLUTION|INST)\]"
    r"|</?(?:code|pre|python|answer|solution|program|tool_call|s)\b[^<>\n]{0,40}>|<\|[a-z_]{1,30}\|>|\\(?:begin|end)\{(?:code|verbatim"
    r"|lstlisting|minted|python)\}(?:\[[^\]\n]{0,40}\]|\{python\})?|^[ \t]*+\[END\][ \t]*+$"
)
STRING = (
    r"""'{3}(?s:.)*?'{3}|"{3}(?s:.)*?"{3}|'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+\""""
    r"|\\(?!begin\{|end\{)."
)
NO_STRING = r"(?!)"
WRAPPINGS = [
    re.compile(rf"(?P<string>{string})|(?P<tag>{TAG})|\u00a0", re.MULTILINE)
    for string in (STRING, NO_STRING)
]
"""Tags and no-break spaces to replace: outside strings; if no function is found, everywhere."""
FENCE = re.compile(r"`{3,}+|^[ \t]*+~{3,}+|^[ \t]*+'{3}(?=python|py\b)", re.MULTILINE)
LANGUAGE = re.compile(r"[ \t]*+(?P<name>[\w+#.-]*+)")
FOREIGN = re.compile(
    r"bash|sh|shell|zsh|console|terminal|text|txt|output|plaintext|json|yaml|toml|html|xml|sql|c"
    r"|cpp|c\+\+|java|javascript|js|typescript|ts|go|rust|ruby|markdown|md|diff|powershell|cmd"
)
PYTHON = re.compile(r"python[23]?|py3?|pycon|ipython|python-repl")
PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d+\]:|\.\.\.:)(?: |$)")
QUOTED = re.compile(r"^[ \t]*(?:>|\|)(?: |$)")
NUMBERED = re.compile(r"^[ \t]*\d{1,3}(?:[.:|)]|[ \t])[ \t]?")
IMPORTED = r"[\w.]++(?:[ \t]++as[ \t]++\w++)?+"
STATEMENT = re.compile(
    r"[ \t]*+(?:(?:async[ \t]++)?def[ \t]++\w++[ \t]*+[(\[]|class[ \t]++\w++[ \t]*+[(:]"
    rf"|import[ \t]++{IMPORTED}(?:[ \t]*+,[ \t]*+{IMPORTED})*+[ \t]*+(?:$|[#;])"
    r"|from[ \t]++[\w.]++[ \t]++import[ \t]++[\w*(]|@\w[\w.]*+(?:\(|[ \t]*+$)"
    r"|\w++[ \t]*+(?::[^=\n]++)?+=[^=]"
    r"|(?:if|for|while|try|with)\b.*:[ \t]*+(?:#|$)|#)"
)
BRACKET = re.compile(r"[()\[\]{}]")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
KEPT_FROM_OTHER_BLOCKS = (*DEFINITIONS, *ASSIGNMENTS, ast.Import, ast.ImportFrom)
BODY = re.compile(r"^[ \t]*+(?:return|yield)\b", re.MULTILINE)


class Parser:
    """Python's parser, with a limit on the number of parses and characters."""

    def __init__(self) -> None:
        self.parses, self.characters = MOST_PARSES, MOST_PARSED

    def parse(self, source: str) -> ast.Module | int:
        """Return the tree, or the line of the error counted from 1; 0 if no line is known."""
        if self.parses <= 0 or self.characters < len(source) or _is_too_deep(source):
            return 0
        self.parses, self.characters = self.parses - 1, self.characters - len(source)
        try:
            return parsed(source)
        except SyntaxError as error:
            return error.lineno or 0
        except (ValueError, RecursionError, MemoryError):
            return 0


def _is_too_deep(source: str) -> bool:
    depth = 0
    for bracket in BRACKET.findall(source):
        depth = depth + 1 if bracket in "([{" else max(0, depth - 1)
        if depth > DEEPEST:
            return True
    return False


# -- The program of an answer ------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """Lines that together are valid Python."""

    source: str
    tree: ast.Module
    is_cut_off: bool
    """Whether the next line was indented, so that the program ends in the middle of a function."""


def written_program(text: str, example: Example) -> str:
    """The program in an answer, ready to be run after the example's preamble; "" if none."""
    name, stub, parser = wanted_name(example), stub_in(example), Parser()
    text = text[:LONGEST].replace("\r\n", "\n").replace("\r", "\n")
    # Strings stay, tags become line ends, and no-break spaces become plain spaces.
    texts = list(
        dict.fromkeys(
            wrapping.sub(lambda m: m["string"] or ("\n" if m["tag"] else " "), text)
            for wrapping in WRAPPINGS
        )
    )
    for unwrapped in texts:
        if program := _whole_function(unwrapped, name, parser):
            return program
    bodies = (_body_behind(stub, [*_blocks(text)[0], text], name, parser) for text in texts if stub)
    anything = (program.source for text in texts for program in _programs(text, "", parser))
    return next(filter(None, bodies), "") or next(anything, "")


def _whole_function(text: str, name: str, parser: Parser) -> str:
    """The last complete function of that name, with what it needs; else one that is cut off."""
    fenced, outside = _blocks(text)
    best: tuple[Program, list[str]] | None = None
    for block in dict.fromkeys((*_in_order(fenced, name), outside, text)):
        programs = list(_programs(_bare(block, name), name, parser))
        for program in programs:
            is_better = best is None or not program.is_cut_off
            if is_better and _defines(program.tree, name):
                others = [other.source for other in programs if other is not program]
                best = program, [*(other for other in fenced if other is not block), *others]
            if best and not best[0].is_cut_off:
                return _completed(*best, name, parser)
    return _completed(*best, name, parser) if best else ""


def wanted_name(example: Example) -> str:
    """Name of the function that the tests call; "" if it cannot be found."""
    called = re.findall(r"^check\((\w+)\)\s*$", example.tests, re.MULTILINE)
    if called:
        return str(called[-1])
    names = re.findall(r"\b([A-Za-z_]\w*)\(", example.tests.partition("assert")[2])
    defined = re.findall(r"^(?:async )?def (\w+)|^(\w+) *=", example.target, re.MULTILINE)
    ours = {first or second for first, second in defined}
    return next((name for name in names if name in ours), names[0] if names else "")


def stub_in(example: Example) -> str:
    """Signature and docstring that the prompt gives, to be completed by a body; else ""."""
    heads = list(re.finditer(r"^def \w+", example.prompt, re.MULTILINE))
    return example.prompt[heads[-1].start() :].rstrip() + "\n" if heads else ""


def _blocks(text: str) -> tuple[list[str], str]:
    """Return the fenced blocks, except those in other languages, and the text outside fences."""
    fenced, outside = [], []
    at, opened = 0, ""
    for fence in FENCE.finditer(text):
        if fence.start() < at:
            continue
        piece = text[at : fence.start()]
        head = LANGUAGE.match(text, fence.end())
        name = head["name"].lower() if head else ""
        if opened and (not PYTHON.fullmatch(name) or text.endswith(" ", 0, fence.start())):
            if not FOREIGN.fullmatch(opened):
                fenced.append(piece)
            at, opened = fence.end(), ""
            continue
        outside.append(piece)
        opened = name or "python"
        is_code = not PYTHON.fullmatch(name) and not FOREIGN.fullmatch(name) and name != ""
        at = fence.end() if is_code or head is None else head.end("name")
        if is_code:
            opened = "python"
    (fenced if opened and not FOREIGN.fullmatch(opened) else outside).append(text[at:])
    return fenced, "\n".join(outside)


def _in_order(blocks: list[str], name: str) -> list[str]:
    """Blocks that define the function before the others, the last of them first."""
    pattern = _definition_of(name)
    return sorted(blocks, key=lambda block: pattern.search(block) is not None)[::-1]


def _definition_of(name: str) -> re.Pattern[str]:
    word = re.escape(name) if name else r"\w++"
    return re.compile(
        rf"(?:\bdef[ \t]++{word}[ \t]*+[(\[]"
        rf"|(?<![\w.]){word}[ \t]*+(?::[^=\n]{{1,60}}+)?+[ \t]*+=(?!=))"
    )


def _heads(lines: list[str], name: str) -> list[int]:
    """Indices of lines that begin with a definition of the name, else of those that contain one."""
    pattern = _definition_of(name)
    held = [i for i, line in enumerate(lines) if pattern.search(line)]
    begun = [i for i in held if pattern.match(lines[i].lstrip().removeprefix("async ").lstrip())]
    return begun or held


def _bare(block: str, name: str) -> str:
    """A block without prompts, quote marks and line numbers; its definition begins a line."""
    lines = block.split("\n")
    heads = _heads(lines, name)
    if not heads:
        return block
    head = lines[heads[0]]
    for mark in (PROMPT, QUOTED, NUMBERED):
        if mark.match(head):
            marked = (line for line in lines if mark.match(line))
            return "\n".join(mark.sub("", line, count=1) for line in marked)
    found = _definition_of(name).search(head)
    before = head[: found.start()] if found else ""
    if found and before.strip() and not STATEMENT.match(head):
        lines[heads[0]] = head[found.start() :]
    return "\n".join(lines)


def _programs(block: str, name: str, parser: Parser) -> Iterator[Program]:
    """Yield the Python around the last definition of a function, then around the first."""
    lines = [line.rstrip() for line in block.split("\n")]
    heads = _heads(lines, name) or [i for i, line in enumerate(lines) if STATEMENT.match(line)][:1]
    for head in dict.fromkeys([*heads[-1:], *heads[:1]]):
        if program := _program(lines, head, parser):
            yield program


def _program(lines: list[str], head: int, parser: Parser) -> Program | None:
    """Shrink the lines around `head` until they parse; each error tells which line to leave out."""
    start, end = _first_statement(lines, 0, head), len(lines)
    while True:
        source = _dedented(lines[start:end])
        tree = parser.parse(source)
        if isinstance(tree, ast.Module):
            is_cut_off = end < len(lines) and lines[end][:1].isspace()
            # A word of prose may be Python by accident.
            holds_code = any(isinstance(n, (*DEFINITIONS, *ASSIGNMENTS)) for n in tree.body)
            return Program(source, tree, is_cut_off) if holds_code else None
        error = start + tree - 1
        if tree <= 0:
            return None
        if error <= head and start < head:
            start = _first_statement(lines, min(error, head - 1) + 1, head)
        elif min(error, end - 1) > head:
            end = min(error, end - 1)
        else:
            return None


def _first_statement(lines: list[str], start: int, head: int) -> int:
    """The first line from `start` on that looks like code; at the latest, the function itself."""
    return next((i for i in range(start, head) if STATEMENT.match(lines[i])), head)


def _dedented(lines: list[str]) -> str:
    """Remove the first line's indentation from all lines, or from it alone if a line has less."""
    first = lines[0].lstrip()
    indent = len(lines[0]) - len(first)
    following = next(filter(None, lines[1:]), "")
    is_shifted = first.endswith(":") and len(following) - len(following.lstrip()) <= indent
    hanging = (STATEMENT.match(line) and line[:indent].strip() for line in lines[1:])
    if indent and (is_shifted or any(hanging)):
        return "\n".join([first, *lines[1:]])
    kept = [line[indent:] if not line[:indent].strip() else line.lstrip() for line in lines]
    return "\n".join(kept)


def _definitions(tree: ast.Module, name: str) -> Iterator[ast.stmt]:
    """Yield the statements that define a name as a function or class; "" stands for any name."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and (not name or node.name == name):
            yield node
        elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if (not name and isinstance(node.value, ast.Lambda)) or name in targets:
                yield node


def _defines(tree: ast.Module, name: str) -> bool:
    """Whether the function is defined with a body, not only a signature."""
    return not all(map(_does_nothing, _definitions(tree, name)))


def _does_nothing(node: ast.stmt) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    is_empty = (
        isinstance(line, ast.Pass)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )
    return all(is_empty)


def _completed(program: Program, others: Sequence[str], name: str, parser: Parser) -> str:
    """Prepend imports and helpers from other blocks to a program, and drop its demonstrations."""
    given = [_kept_of(other, parser) for other in others]
    tree = program.tree
    defined = max((node.lineno for node in _definitions(tree, name)), default=0)
    dropped = [node for node in tree.body if _is_idle(node, name, defined)]
    own = _without(program.source, dropped).strip("\n")
    return "\n".join([*filter(None, given), own, *_method_bridge(tree, name)]) + "\n"


def _is_idle(node: ast.stmt, name: str, defined: int) -> bool:
    """Whether a statement only demonstrates the function, or is prose that happens to be Python."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name | ast.Tuple):
        return True
    is_shown = isinstance(node, ast.Expr | ast.Assert) and node.lineno > defined
    return is_shown and (_mentions(node, name) or _mentions(node, "print"))


def _without(source: str, statements: Sequence[ast.stmt]) -> str:
    """Remove statements from a program; one that shares its lines is replaced by `pass`."""
    lines = source.encode().split(b"\n")  # the parser counts bytes
    for node in reversed(statements):
        first, last = _first_line(node) - 1, (node.end_lineno or node.lineno) - 1
        is_decorated = first < node.lineno - 1
        before = b"" if is_decorated else lines[first][: node.col_offset]
        behind = lines[last][node.end_col_offset :]
        is_alone = not (before + behind).strip() and not lines[first - 1].endswith(b"\\")
        lines[first : last + 1] = [before + (b"" if is_alone else b"pass") + behind]
    return b"\n".join(lines).decode()


def _kept_of(block: str, parser: Parser) -> str:
    """Definitions and imports of another block of the answer, if all of it is Python."""
    source = textwrap.dedent(block).strip("\n")
    tree = parser.parse(source)
    if not isinstance(tree, ast.Module):
        return ""
    dropped = [
        node
        for node in tree.body
        if not isinstance(node, KEPT_FROM_OTHER_BLOCKS)
        or _does_nothing(node)
        or (  # an assignment that runs something, as a demonstration would
            isinstance(node, ast.Assign | ast.AnnAssign)
            and any(isinstance(part, ast.Call) for part in ast.walk(node))
        )
    ]
    return _without(source, dropped).strip("\n")


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, DEFINITIONS) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _method_bridge(tree: ast.Module, name: str) -> list[str]:
    """Lines that make a method available as a function, as for `class Solution`."""
    top = {node.name for node in tree.body if isinstance(node, DEFINITIONS)}
    for node in tree.body:
        if name and name not in top and isinstance(node, ast.ClassDef):
            methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
            if name in methods and "__init__" not in methods:
                decorators = map(ast.unparse, methods[name].decorator_list)
                owner = node.name if "staticmethod" in decorators else f"{node.name}()"
                return [f"\n{name} = {owner}.{name}"]
    return []


def _body_behind(stub: str, blocks: Sequence[str], name: str, parser: Parser) -> str:
    """Complete the prompt's own function with the first block that is a body for it."""
    for block in blocks:
        if not BODY.search(block):
            continue
        lines = _as_body(block.strip("\n").split("\n"))
        for _ in range(4):
            program = stub + "\n".join(lines) + "\n"
            tree = parser.parse(program)
            if isinstance(tree, ast.Module):
                if _defines(tree, name):
                    return program
                break
            error = tree - stub.count("\n") - 1
            if error <= 0 or error >= len(lines) + 1:
                break
            lines = lines[: min(error, len(lines) - 1)]
    return ""


def _as_body(lines: list[str]) -> list[str]:
    """Indent lines as a function's body, and leave out unindented text after it."""
    lines = [line.rstrip() for line in lines]
    written = [i for i, line in enumerate(lines) if line]
    if not written:
        return lines
    first = written[0]
    indents = [len(lines[i]) - len(lines[i].lstrip()) for i in written]
    lines[first] = " " * _lost_indent(lines[first], indents) + lines[first]
    if lines[first][:1].isspace():
        stop = next((i for i in written[1:] if not lines[i][0].isspace()), None)
        lines = lines[first:stop]
    return textwrap.indent(textwrap.dedent("\n".join(lines)), "    ").split("\n")


def _lost_indent(first: str, indents: list[int]) -> int:
    """Indentation that a body's first line lost when the answer was stripped."""
    rest = indents[1:]
    if indents[0] or not rest or min(rest) < 4:
        return 0
    if not first.endswith(":"):
        return min(rest)
    # After a colon, deeper lines are its own block.
    return min(rest) if rest[0] > min(rest) else max(0, min(rest) - 4)


# -- What a gate watches -----------------------------------------------------------------------

HEAD = re.compile(
    r"^[ \t]*+(?:`{3,}+\w{0,12}[ \t]*+|>>>[ \t]*+|\[BEGIN\][ \t]*+)?(?:(?:async[ \t]++)?def[ \t]"
    r"|\w++[ \t]*+=[ \t]*+lambda\b)",
    re.MULTILINE,
)
GLUED_FENCE = re.compile(r"(?<!`)`{3,}+[ \t]*+$", re.MULTILINE)
NOTHING = ("", "...", "pass")
MOST_HEADS = 50


def written_function(text: str, choices: Sequence[str] = ()) -> Candidate | None:
    """Everything from the start through the end of the first function that has a body.

    A function is a `def` or a named `lambda`; if there is none, a bare function body counts.
    """
    found = None
    for _, head in zip(range(MOST_HEADS), HEAD.finditer(text), strict=False):
        found, has_body = _function_at(text, head)
        if has_body:
            return found
    if found is None and (body := BODY.search(text)):
        found, _ = _function_at(text, body)
    return Candidate(found.value, found.start, found.end) if found else None


def _has_body(text: str) -> bool:
    """Whether a function does anything, given its text from the end of its brackets on."""
    line, _, rest = text.partition("\n")
    code = line.partition("#")[0].rstrip()
    for nothing in NOTHING:
        code = code.removesuffix(nothing).rstrip()
    return not code.endswith(":") or rest.strip() not in NOTHING


def _function_at(text: str, head: re.Match[str]) -> tuple[Candidate | None, bool]:
    """Return the text through the function at `head`, and whether the function does anything."""
    end, conclusive = len(text), False
    signature = signature_end(text, head.end())
    line_end = text.find("\n", signature)
    if line_end >= 0 and (after := TOP_LEVEL.search(text, line_end + 1)):
        end, conclusive = after.start(), after[0] != BROKEN
    has_body = _has_body(text[signature:end])
    end = len(text[:end].rstrip())
    value = normal_code(GLUED_FENCE.sub("", text[:end]))
    return (Candidate(value, 0, end, conclusive) if value else None), has_body
