"""Locations of runs: a folder on this machine, or an address in an object store.

A location is joined, taken apart and compared like any path. Only `c4.store.storage` accesses the
files at a location; the type enforces this, because a `PurePath` cannot be opened.
"""

import os
import re
from pathlib import Path, PurePath, PurePosixPath
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from c4.errors import ConfigError
from c4.errors.system import user_path

Location: TypeAlias = PurePath
"""A `Path` or an `ObjectPath`."""
SCHEMES = ("s3", "gs", "az")
"""Schemes of the object stores: Amazon S3 and compatible stores, Google's and Azure's."""
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
ALMOST = re.compile(rf"(?:{'|'.join(SCHEMES)}):", re.IGNORECASE)
"""Start of an address that has lost a slash."""


class ObjectPath(PurePosixPath):
    """An address in an object store, such as `s3://bucket/runs`."""

    def __str__(self) -> str:
        scheme, _, rest = super().__str__().partition(":/")
        return f"{scheme}://{rest}"

    def __fspath__(self) -> str:
        raise ConfigError(f"{self}: an address in an object store, where a local path is needed")

    @property
    def bucket(self) -> str:
        """The address of the bucket."""
        return str(type(self)(*self.parts[:2]))

    @property
    def key(self) -> str:
        """The object's name inside the bucket."""
        return "/".join(self.parts[2:])


def parse_location(text: str | PurePath) -> Location:
    """Parse a user's location of runs: a folder, `file://…`, or the address of an object store."""
    if "\0" in str(text):
        raise ConfigError("a path cannot hold the character NUL")
    if isinstance(text, PurePath):
        return text if isinstance(text, ObjectPath) else _checked(Path(text))
    address = ADDRESS.fullmatch(text)
    if address is None:
        return _checked(Path(text))
    scheme, rest = address[1].lower(), address[2]
    if scheme == "file":
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ConfigError("file://…: write three slashes, like file:///home/me/runs")
        return Path(unquote(parts.path))
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in ("file", *SCHEMES))
        raise ConfigError(f"{scheme}://…: there is no such storage; known are {known}")
    return _object_path(scheme, rest)


def parse_local_path(text: str | PurePath) -> Path:
    """Parse a user's location of a local file: a path or `file://…`."""
    location = parse_location(text)
    if isinstance(location, ObjectPath):
        raise ConfigError(f"{location}: this must be on the local disk; give a path")
    return Path(location)


def resolve_location(location: Location) -> Location:
    """Return the canonical form of a location, independent of the working directory."""
    return location if isinstance(location, ObjectPath) else Path(location).resolve()


def cache_folder() -> Path:
    """Return this machine's cache folder, for data computed from remote runs."""
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "c4"


def _checked(path: PurePath) -> PurePath:
    """Refuse a path that was meant as an address: it would become a folder named `s3:`."""
    if ALMOST.match(str(path)):
        scheme = str(path).partition(":")[0].lower()
        raise ConfigError(f"{scheme}:…: write an address as text, like {scheme}://bucket/path")
    return path


def _object_path(scheme: str, rest: str) -> ObjectPath:
    bucket, _, key = rest.partition("/")
    # Do not repeat the address: the bucket may hold a password, the rest a signature.
    if "@" in bucket or "?" in rest:
        raise ConfigError(
            f"{scheme}://…: an address holds a bucket and a path, and nothing secret; give "
            "credentials by the environment, as the store's own tools take them"
        )
    names = [name for name in key.split("/") if name]
    if not bucket or {".", ".."} & {bucket, *names}:
        raise ConfigError(f"{scheme}://{rest}: write {scheme}://bucket/path")
    return ObjectPath(f"{scheme}:", bucket, *names)
