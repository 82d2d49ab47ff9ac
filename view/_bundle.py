"""The page's modules as one script: no build step, and nothing that a browser would have to load.

Each module becomes a function of its own that returns what it exports. The modules keep to one
form for that: named imports on a line each, and `export` in front of what is exported.
"""

import re
from functools import cache
from graphlib import TopologicalSorter

from c4.view._static import read_static, static_names

IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w-]+\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) (\w+))", re.MULTILINE)


@cache
def bundle_modules() -> str:
    """All modules in one script, each after those that it needs."""
    sources = {name: read_static(name)[0] for name in static_names() if name.endswith(".js")}
    needs = {
        name: {needed for _, needed in IMPORT.findall(source)} for name, source in sources.items()
    }
    order = TopologicalSorter(needs).static_order()
    wrapped = [_wrap(name, sources[name]) for name in order]
    return "\n".join(['"use strict";', "const c4Modules = {};", *wrapped])


def _wrap(name: str, source: str) -> str:
    exported = ", ".join(EXPORT.findall(source))
    body = EXPORT.sub("", IMPORT.sub(r'const { \1 } = c4Modules["\2"];', source))
    return f'c4Modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();'
