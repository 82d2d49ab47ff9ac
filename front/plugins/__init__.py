"""Plug-ins: one way to name gates, rules, tasks and other objects that users define.

A `Registry` finds an object by c4's own name, by the name of an installed package's entry point, as
`module:object`, or as `path/to/file.py:object`. All but the first run code, so only names that a
user has typed may be looked up. Names and hashes in files that c4 reads are compared, never loaded.
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
