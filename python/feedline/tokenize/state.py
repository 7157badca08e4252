# SPDX-License-Identifier: Apache-2.0
"""The files of an output: ``OUT.bin`` and ``OUT.idx``, for conversations ``OUT.loss_mask`` (a byte per token, 0 if it
is not trained), their description ``OUT.tokenize.json``, and the folder ``OUT.tokenize.unfinished`` with the finished
parts of a call that did not end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataError, StorageError
from ..pack.shard_file import durable_file, write_durably
from . import part_files
from .megatron_files import TokenType, write_index
from .part_files import PartReport

VERSION = 1
_ARGUMENTS = "arguments.json"
_COPY = 1 << 24


class Output:
    """The paths of the files of an output. ``prefix`` is the path without ``.bin`` and ``.idx``."""

    def __init__(self, output: str) -> None:
        self.prefix = Path(output.removesuffix(".bin").removesuffix(".idx"))
        self.bin, self.idx, self.masks = (self._named(end) for end in (".bin", ".idx", ".loss_mask"))
        self.images = self._named(".images")  # see PackedImages
        self._description = self._named(".tokenize.json")
        self.folder = self._named(".tokenize.unfinished")

    def _named(self, end: str) -> Path:
        return self.prefix.with_name(self.prefix.name + end)

    def description(self) -> dict[str, Any] | None:
        """Returns the description of a finished output, or None. Raises ConfigError if other files have the output's
        names.
        """
        try:
            content = json.loads(self._description.read_bytes())
        except FileNotFoundError:
            other = next((path for path in (self.bin, self.idx, self.masks, self.images) if path.exists()), None)
            if other is not None and not self.folder.exists():
                raise ConfigError(
                    f"tokenize: {other} exists and was not written by tokenize; choose another name"
                ) from None
            return None
        except OSError as error:
            raise StorageError(
                f"tokenize: cannot read {self._description}: {error.strerror}",
                errno=error.errno,
                shard=str(self.prefix),
            ) from None
        except ValueError as error:
            raise DataError(f"tokenize: {self._description} is damaged ({error}); remove it and {self.bin}") from None
        sizes = content.get("bytes")
        if not isinstance(sizes, dict) or sizes != self.sizes():
            raise DataError(
                f"tokenize: {self.bin} or {self.idx} has changed since it was written; remove both and "
                f"{self._description.name} to write them again"
            )
        found: dict[str, Any] = content
        return found

    def sizes(self) -> dict[str, int]:
        """Returns the bytes of the files that exist, by the end of their names."""
        paths = (self.bin, self.idx, self.masks, self.images)
        return {path.suffix: path.stat().st_size for path in paths if path.exists()}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Creates the folder of parts, and locks it against other processes until the block ends or this one dies."""
        self.folder.mkdir(exist_ok=True)
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ConfigError(
                f"tokenize: another process is writing {self.prefix}; wait for it, or choose another name"
            ) from None
        finally:
            os.close(handle)

    def begin(self, arguments: dict[str, Any]) -> None:
        """Stores the arguments. Raises ConfigError if an interrupted call had other arguments."""
        path = self.folder / _ARGUMENTS
        try:
            begun = json.loads(path.read_bytes())
        except FileNotFoundError:
            write_durably(path, json.dumps(arguments, indent=1).encode())
            return
        except ValueError as error:
            raise DataError(f"tokenize: {path} is damaged ({error}); remove {self.folder}") from None
        expect_same(begun, arguments, f"{self.folder} was started", f"or remove {self.folder}")

    def publish(self, arguments: dict[str, Any], parts: Sequence[PartReport], dtype: TokenType) -> None:
        """Writes the output from the parts. The index appears last, when everything that it refers to is stored."""
        numbers = [part.number for part in parts]
        _join(self.bin, [part_files.tokens_path(self.folder, number) for number in numbers])
        if any(part.masks_sha256 is not None for part in parts):
            _join(self.masks, [part_files.masks_path(self.folder, number) for number in numbers])
        if any(part.images_sha256 is not None for part in parts):
            _join(self.images, [part_files.images_path(self.folder, number) for number in numbers])
        with durable_file(self.idx) as file, contextlib.ExitStack() as held:
            paths = [part_files.lengths_path(self.folder, part.number) for part in parts]
            files = (held.enter_context(open(path, "rb")) for path in paths)
            write_index(file, dtype, files, sum(part.documents for part in parts))
        description = {
            "version": VERSION,
            "arguments": arguments,
            "dtype": dtype.name,
            "documents": sum(part.documents for part in parts),
            "tokens": sum(part.tokens for part in parts),
            "empty": sum(part.empty for part in parts),
            "bytes": self.sizes(),
            "skipped": [vars(one) for part in parts for one in part.skipped],
        }
        write_durably(self._description, (json.dumps(description, indent=1) + "\n").encode())

    def remove(self) -> None:
        """Removes the output, but not its parts."""
        for path in (self._description, self.idx, self.bin, self.masks, self.images):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Removes the parts of a published output."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _join(path: Path, parts: Sequence[Path]) -> None:
    with durable_file(path) as file:
        for part in parts:
            with open(part, "rb") as content:
                shutil.copyfileobj(content, file, _COPY)


def expect_same(begun: dict[str, Any], now: dict[str, Any], what: str, otherwise: str) -> None:
    """Raises ConfigError that lists the differences between arguments."""
    differences = [
        f"{name} was {begun.get(name)!r} and is {now.get(name)!r}"
        for name in sorted(begun.keys() | now.keys())
        if begun.get(name) != now.get(name)
    ]
    if differences:
        raise ConfigError(
            f"tokenize: {what} with other arguments: {'; '.join(differences)}. Pass the same arguments, {otherwise}"
        )
