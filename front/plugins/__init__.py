"""Plug-ins: one way to name gates, rules, tasks and whatever else users bring along.

A `Registry` finds an object by the name of one of c4's own, by the name under which an installed
package offers it (an entry point), as `module:object`, or as `path/to/file.py:object`. All but the
first run code, so only names that a user has typed may come here. Files that c4 reads hold names
and hashes, which are compared and never loaded.
"""

from c4.plugins._load import (
    Plugin,
    aliases,
    canonical_name,
    defined_names,
    load_offered,
    names_file,
    unknown_object,
)
from c4.plugins._registry import Registry, offered, plain_label
from c4.plugins._source import definition, source_hash

__all__ = [
    "Plugin",
    "Registry",
    "aliases",
    "canonical_name",
    "defined_names",
    "definition",
    "load_offered",
    "names_file",
    "offered",
    "plain_label",
    "source_hash",
    "unknown_object",
]
