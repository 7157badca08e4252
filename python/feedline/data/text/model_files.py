# SPDX-License-Identifier: Apache-2.0
"""Tokenizers and chat templates in files: a tokenizer.json, a sentencepiece model, or a model's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ConfigError
from . import libraries
from .libraries import Tokenizer

_INSTALL = 'pip install "feedline[tokenize]"'
# Tokens that end documents in published vocabularies, for tokenizers that do not name theirs.
_END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<eod>", "<|eos|>", "[EOS]")


class Model(NamedTuple):
    """A tokenizer, the chat templates by name, the special tokens that templates use, and its name for messages."""

    tokenizer: Tokenizer
    templates: Mapping[str, str]
    special_tokens: Mapping[str, str]
    shown: str
    end_id: int | None  # of the end-of-document token
    folder: Path | None = None  # of the model's files


def load(where: str, given: Any, add_special_tokens: bool) -> Model:
    """Returns the tokenizer of a path or an object.

    Raises ConfigError if the path has no tokenizer, or if the library that reads it is missing.
    """
    if not isinstance(given, str | os.PathLike):
        tokenizer = _of_object(where, given, add_special_tokens)
        tokens = getattr(given, "special_tokens_map", None)
        templates = _templates(getattr(given, "chat_template", None))
        kind = type(given)
        shown = f"<{kind.__module__.partition('.')[0]}.{kind.__qualname__}>"
        return Model(
            tokenizer, templates, _texts(tokens if isinstance(tokens, Mapping) else {}), shown, tokenizer.end_id
        )
    path = Path(os.fspath(given)) if not isinstance(os.fspath(given), bytes) else None
    if path is None or str(path) in ("", "."):
        raise ConfigError(f"{where}: tokenizer must be a path or a tokenizer, not {given!r}")
    if not os.path.exists(path):  # False also for names that no file can have
        raise ConfigError(
            f"{where}: tokenizer {str(path)!r} does not exist; pass a tokenizer.json, a model's folder, or a tokenizer "
            "object. Models are not downloaded: pass the folder that huggingface_hub.snapshot_download() returns"
        )
    folder = path if path.is_dir() else path.parent
    is_model = path.is_dir() or path.name in ("tokenizer.json", "tokenizer.model")
    config = _config(where, folder) if is_model else {}
    special = _texts(config)
    tokenizer = _of_file(where, _file_in(where, path), add_special_tokens)
    templates = _templates_in(where, folder, config) if is_model else {}
    end = tokenizer.token_id(special["eos_token"]) if "eos_token" in special else tokenizer.end_id
    return Model(tokenizer, templates, special, str(path), end, folder if is_model else None)


def end_id(where: str, model: Model, eod: Any) -> int:
    """Returns the id of the end-of-document token: ``eod``, a token or an id, or the tokenizer's own."""
    tokenizer, size = model.tokenizer, model.tokenizer.size
    if eod is None:
        if model.end_id is not None:
            return int(model.end_id)
        found = [token for token in _END_TOKENS if tokenizer.token_id(token) is not None]
        if len(found) != 1:
            has = (
                f"has several end-of-document tokens, {', '.join(found)}" if found else "names no end-of-document token"
            )
            raise ConfigError(f"{where}: {model.shown} {has}; pass one as eod (--eod)")
        eod = found[0]
    if isinstance(eod, str):
        number = tokenizer.token_id(eod)
        if number is None and eod.isdecimal():
            number = int(eod)
        if number is None:
            raise ConfigError(f"{where}: eod {eod!r} is not a token of {model.shown}; pass a token or its id")
        eod = number
    if not isinstance(eod, int) or isinstance(eod, bool) or eod < 0 or (size is not None and eod >= size):
        last = "" if size is None else f" from 0 to {size - 1}"
        raise ConfigError(f"{where}: eod must be a token of {model.shown} or its id{last}, not {eod!r}")
    return eod


def _of_object(where: str, given: Any, add_special_tokens: bool) -> Tokenizer:
    try:
        return libraries.of_object(where, given, add_special_tokens)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{where}: cannot use {type(given).__qualname__} as a tokenizer: {type(error).__name__}: {error}"
        ) from error


def _file_in(where: str, path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in ("tokenizer.json", "tokenizer.model"):
        if (path / name).is_file():
            return path / name
    raise ConfigError(
        f"{where}: the folder {str(path)!r} has neither tokenizer.json nor tokenizer.model; pass a model's folder, or "
        "load the tokenizer with its library and pass the object"
    )


def _of_file(where: str, path: Path, add_special_tokens: bool) -> Tokenizer:
    if path.suffix == ".model":
        try:
            import sentencepiece
        except ImportError:
            raise ConfigError(f"{where}: {str(path)!r} needs sentencepiece: pip install sentencepiece") from None
        read: Any = lambda: sentencepiece.SentencePieceProcessor(model_file=str(path))  # noqa: E731
    else:
        try:
            import tokenizers
        except ImportError:
            raise ConfigError(f"{where}: {str(path)!r} needs tokenizers: {_INSTALL}") from None
        read = lambda: tokenizers.Tokenizer.from_file(str(path))  # noqa: E731
    try:
        return libraries.of_object(where, read(), add_special_tokens)
    except Exception as error:
        raise ConfigError(f"{where}: {str(path)!r} is not a tokenizer file: {error}") from None


def _config(where: str, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):  # the second wins
        found |= json_object(where, folder / name)
    return found


def json_object(where: str, file: Path) -> dict[str, Any]:
    """Returns the object in a JSON file; empty if the file does not exist."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: cannot read {str(file)!r}: {error}") from None
    return content if isinstance(content, dict) else {}


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the special tokens of a config, such as ``bos_token``, as templates use them."""
    found = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, Mapping) else value
        if name.endswith("_token") and isinstance(text, str):
            found[name] = text
    return found


def _templates_in(where: str, folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    file = folder / "chat_template.jinja"
    if file.is_file():
        try:
            return {"default": file.read_text(encoding="utf-8")}
        except (OSError, ValueError) as error:
            raise ConfigError(f"{where}: cannot read {str(file)!r}: {error}") from None
    # the third file is the form of processors before transformers 4.50
    return _templates(config.get("chat_template")) or _templates(
        json_object(where, folder / "chat_template.json").get("chat_template")
    )


def _templates(given: Any) -> dict[str, str]:
    if isinstance(given, str):
        return {"default": given}
    if isinstance(given, list):  # the form in tokenizer_config.json
        given = {one.get("name"): one.get("template") for one in given if isinstance(one, Mapping)}
    if not isinstance(given, Mapping):
        return {}
    return {name: text for name, text in given.items() if isinstance(name, str) and isinstance(text, str)}
