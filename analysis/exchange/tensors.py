"""Files of `torch.save`, read without running them.

Such a file is a zip archive with a pickle, and a pickle is a program: loading one runs whatever its
author wrote. Here it is not loaded but read, instruction by instruction, by a machine that knows
dictionaries, lists, tuples, texts, numbers and tensors, and nothing else. The first instruction
that asks for more refuses the file.
"""

import io
import math
import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import numpy.typing as npt

from c4.errors import DataError, failure, shortened
from c4.errors.system import reason, require_plain_file

LARGEST_FILE = 2**30
"""Bytes of a file that is read."""
LARGEST_PICKLE = 2**22
"""Bytes of the pickle inside; tensors lie beside it. One byte builds at most one small object."""
LARGEST_DIRECTORY = 2**22
"""Bytes of the archive's list of members, of which a decode of 256 steps needs 40,000."""
MOST_TENSOR_BYTES = 2**28
"""Bytes that all storages of a file may take; tensors are views of them and take none."""
MOST_TENSORS = 2**14
"""Tensors in a file; a decode of 256 steps has some 300. Each costs more time than its bytes."""
MOST_AXES = 32
"""Axes that a tensor may have."""
LONGEST_REASON = 200
"""Characters of what is said of a damaged file, which may quote it."""

REBUILD = "torch._utils _rebuild_tensor_v2"
HOOKS = "collections OrderedDict"
"""What an empty dictionary of hooks is made by; every tensor has one."""
STORAGES = {
    "torch LongStorage": "<i8",
    "torch IntStorage": "<i4",
    "torch ShortStorage": "<i2",
    "torch CharStorage": "<i1",
    "torch ByteStorage": "<u1",
    "torch BoolStorage": "<?",
    "torch DoubleStorage": "<f8",
    "torch FloatStorage": "<f4",
    "torch HalfStorage": "<f2",
    "torch BFloat16Storage": "<u2",
}
"""The types of storage, by the names under which pickles ask for them."""
BFLOAT16 = "torch BFloat16Storage"
"""The upper halves of 32-bit numbers, which NumPy has no type for."""
KNOWN = {REBUILD, HOOKS, *STORAGES}
LARGEST_KEY = 2**20
"""Numbers that may name an item; crafted larger ones would make a dictionary slow without end."""
OLD_PICKLES = 4
"""Pickles at the start of a file by torch.save before 1.6; the last of them is the object."""

Array = npt.NDArray[Any]
_MARK = object()


class _NotDataError(ValueError):
    """An instruction that builds something else than data and tensors."""


@dataclass(frozen=True)
class _Name:
    """Something that a pickle asks for by name. It is never looked up."""

    name: str


def read_tensors(path: Path) -> Any:
    """What `torch.save` wrote, with tensors as NumPy arrays. Nothing of the file is run."""
    try:
        require_plain_file(path, LARGEST_FILE)
        with _File(path) as file:
            if not zipfile.is_zipfile(file):
                _refuse_bare(file)
            with zipfile.ZipFile(file) as archive:
                file.most = LARGEST_FILE
                return _read_archive(_Archive(archive))
    except _NotDataError as error:
        raise DataError(f"{path}: {error}; it was refused, and nothing of it was run") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a file that torch.save writes ({reason(error)})") from error
    except MemoryError:
        raise
    except Exception as error:  # zipfile and pickletools fail on damaged files in many ways
        why = str(error) if isinstance(error, ValueError) else failure(error)
        raise DataError(
            f"{path}: damaged, or no file of tensors ({why[:LONGEST_REASON]})"
        ) from error


class _File(io.FileIO):
    """A file that gives a bounded number of bytes at once.

    `zipfile` reads the list of members at once and makes a large object of each.
    """

    most = LARGEST_DIRECTORY

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.most:
            raise ValueError(f"its list of members has {size:,} bytes, which are too many")
        return super().read(size)


def _read_archive(archive: "_Archive") -> Any:
    if not archive.is_little_endian:
        raise ValueError("its numbers are big-endian")
    return _Machine(archive.storage).run(io.BytesIO(archive.program))


def _refuse_bare(file: IO[bytes]) -> NoReturn:
    """Refuse a pickle that lies in no archive; where it asks for code, by the name of that."""
    file.seek(0)
    content = io.BytesIO(file.read(LARGEST_PICKLE))
    try:
        for _ in range(OLD_PICKLES):
            _Survey(lambda _: b"").run(content)
    except _NotDataError:
        raise
    except Exception:  # noqa: S110  # there are fewer, or the file is none
        pass
    raise zipfile.BadZipFile("it is no zip archive, as files of PyTorch 1.6 and later are")


class _Archive:
    """The members of the zip file, none of them larger than it says or than the file itself."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise ValueError("it has two members of one name")
        pickles = [name for name in self._members if name.endswith(".pkl")]
        if len(pickles) != 1 or pickles[0].rpartition("/")[2] != "data.pkl":
            raise ValueError("it has no data.pkl, or other pickles")
        self._root = pickles[0].removesuffix("data.pkl")
        if not all(name.startswith(self._root) for name in self._members) or ".." in self._root:
            raise ValueError("it has members outside its folder")
        self._left = MOST_TENSOR_BYTES

    @property
    def program(self) -> bytes:
        """The pickle."""
        return self._read(f"{self._root}data.pkl", LARGEST_PICKLE)

    @property
    def is_little_endian(self) -> bool:
        name = f"{self._root}byteorder"
        return name not in self._members or self._read(name, 16) == b"little"

    def storage(self, key: str) -> bytes:
        """The bytes of one storage."""
        content = self._read(f"{self._root}data/{key}", self._left)
        self._left -= len(content)
        return content

    def _read(self, name: str, most: int) -> bytes:
        info = self._members[name]
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name!r} is compressed, which torch.save never does")
        if info.file_size > most:
            raise ValueError(f"{name!r} has {info.file_size:,} bytes, which are too many")
        return self._archive.read(info)


class _Machine:
    """Runs the instructions of a pickle that build data; `DO` lists all that it knows."""

    def __init__(self, load: Callable[[str], bytes]) -> None:
        self.load = load
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.storages: dict[str, Array] = {}
        self.tensors = 0

    def run(self, program: IO[bytes]) -> Any:
        """Run to the end, and give what is left on the stack."""
        for opcode, argument, _ in pickletools.genops(program):
            if opcode.name == "STOP":
                return self.stack.pop()
            if opcode.name not in DO:
                raise _NotDataError(
                    f"it asks for {opcode.name}, which builds neither data nor tensors"
                )
            DO[opcode.name](self, argument)
        raise ValueError("its pickle does not end")

    def pop_to_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def remember(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def ask_for(self, name: str) -> None:
        if name not in KNOWN:
            shown = shortened(name.replace(" ", "."))
            raise _NotDataError(f"it asks for {shown}, which is no tensor")
        self.push(_Name(name))

    def make(self, name: str) -> None:
        self.ask_for(name)
        raise _NotDataError("it calls what is no tensor")

    def call(self) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        if not isinstance(called, _Name) or not isinstance(arguments, tuple):
            raise _NotDataError("it calls what is no tensor")
        if called.name == HOOKS and not arguments:
            self.push({})
        elif called.name == REBUILD:
            self.tensors += 1
            if self.tensors > MOST_TENSORS:
                raise ValueError("it has too many tensors")
            self.push(self.tensor(*arguments[:4]))
        else:
            raise _NotDataError("it calls what is no tensor")

    def find_storage(self) -> None:
        kind, storage, key, _location, count = self.stack.pop()
        if kind != "storage" or not isinstance(storage, _Name) or storage.name not in STORAGES:
            raise _NotDataError("it asks for an object outside the file")
        if not isinstance(key, str):
            raise ValueError("a storage without a name")
        if key not in self.storages:
            numbers = np.frombuffer(self.load(key), dtype=STORAGES[storage.name])
            widen = storage.name == BFLOAT16
            self.storages[key] = (numbers.astype("<u4") << 16).view("<f4") if widen else numbers
        if len(self.storages[key]) < int(count):
            raise ValueError(f"storage {key!r} is cut off")
        self.push(self.storages[key])

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Array:
        """A read-only view of a storage, which must lie inside it and be no larger than it.

        A pickle can name one storage any number of times, so nothing is copied.
        """
        if not isinstance(storage, np.ndarray):
            raise ValueError("a tensor without a storage")
        if not isinstance(size, tuple) or not isinstance(stride, tuple):
            raise ValueError("a tensor without a shape")
        if not len(size) == len(stride) <= MOST_AXES:
            raise ValueError("a tensor with an impossible shape")
        numbers = [offset, *size, *stride]
        if not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise ValueError("a tensor with an impossible shape")
        if math.prod(size) == 0:
            return np.zeros(size, dtype=storage.dtype) if max(size) < LARGEST_FILE else storage[:0]
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if last >= len(storage) or math.prod(size) > len(storage):
            raise ValueError("a tensor larger than its storage")
        width = storage.dtype.itemsize
        return np.lib.stride_tricks.as_strided(
            storage[offset:], size, [step * width for step in stride], writeable=False
        )

    def ask_for_both(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("it asks for something without a name")
        self.ask_for(f"{module} {name}")

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise _NotDataError("it changes what is no list")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        target, keys = self.stack[-1], items[::2]
        if not isinstance(target, dict) or not all(map(_is_plain_key, keys)):
            raise _NotDataError("it changes what is no dictionary with plain names")
        target.update(zip(keys, items[1::2], strict=True))

    def collect(self) -> None:
        items = self.pop_to_mark()
        self.push({})
        self.update(items)

    def set_one(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.update([key, value])

    def join(self, count: int) -> None:
        items = tuple(self.stack[len(self.stack) - count :])
        if len(items) != count or any(item is _MARK for item in items):
            raise ValueError("its pickle takes more than there is")
        del self.stack[len(self.stack) - count :]
        self.push(items)


class _Survey(_Machine):
    """Builds no tensors, and only looks at what a pickle asks for."""

    def find_storage(self) -> None:
        self.stack[-1] = None

    def tensor(self, *_: Any) -> Any:
        return None


def _is_plain_key(key: Any) -> bool:
    return isinstance(key, str) or (isinstance(key, int) and abs(key) < LARGEST_KEY)


DO: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda m, _: None,
    "FRAME": lambda m, _: None,
    "MARK": lambda m, _: m.push(_MARK),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),
    "NEWFALSE": lambda m, _: m.push(False),
    **dict.fromkeys(
        (
            *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT"),
            *("STRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
        ),
        lambda m, value: m.push(value),
    ),
    "EMPTY_DICT": lambda m, _: m.push({}),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "LIST": lambda m, _: m.push(m.pop_to_mark()),
    "DICT": lambda m, _: m.collect(),
    "TUPLE": lambda m, _: m.push(tuple(m.pop_to_mark())),
    "TUPLE1": lambda m, _: m.join(1),
    "TUPLE2": lambda m, _: m.join(2),
    "TUPLE3": lambda m, _: m.join(3),
    "APPEND": lambda m, _: m.extend([m.stack.pop()]),
    "APPENDS": lambda m, _: m.extend(m.pop_to_mark()),
    "SETITEM": lambda m, _: m.set_one(),
    "SETITEMS": lambda m, _: m.update(m.pop_to_mark()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda m, place: m.remember(place)),
    "MEMOIZE": lambda m, _: m.remember(len(m.memo)),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, place: m.push(m.memo[place])),
    "GLOBAL": lambda m, name: m.ask_for(name),
    "INST": lambda m, name: m.make(name),
    "STACK_GLOBAL": lambda m, _: m.ask_for_both(),
    "BINPERSID": lambda m, _: m.find_storage(),
    "REDUCE": lambda m, _: m.call(),
}
"""The instructions that build data and tensors; what is not here is refused."""
