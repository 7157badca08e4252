# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of other libraries with one interface.

An object is recognised by its methods, not by its class, so that wrappers work too. Objects that callers pass are
copied, and never changed or called, because padding, truncation and caches are state of the object.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ...errors import ConfigError
from .copies import Copies


class Located(NamedTuple):
    """The tokens of a text, and the characters of each: from ``begins`` up to, but not including, ``ends``."""

    ids: list[int]
    begins: list[int]
    ends: list[int]


class Tokenizer(Protocol):
    """A tokenizer. Any thread may call it."""

    library: str  # for messages
    digest_is_exact: bool  # False if `digest` does not depend on all that determines the ids, such as code
    size: int | None  # one more than the largest token id, if the library reports it

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Returns the token ids of each text, with the special tokens that the tokenizer adds."""

    def encode_rendered(self, texts: Sequence[str]) -> list[Any]:
        """Returns the token ids of texts that contain their special tokens; none is added."""

    def located(self, text: str) -> Located | None:
        """Like `encode_rendered`, with the characters of each token; None if the library does not report them."""

    def token_id(self, token: str) -> int | None:
        """Returns the id of a token, or None if the vocabulary does not contain it."""

    @property
    def end_id(self) -> int | None:
        """The id of the end-of-document token, if the library reports it."""

    def digest(self) -> str:
        """Returns a SHA-256 that differs between tokenizers; the same in every process."""


def of_object(where: str, given: Any, add_special_tokens: bool) -> Tokenizer:
    """Returns the tokenizer for an object of a library. Raises ConfigError if it is not a tokenizer."""
    has = [name for name in ("encode_ordinary", "EncodeAsIds", "encode_batch", "encode") if _has(given, name)]
    if _has(given, "convert_tokens_to_ids") and callable(given):
        backend = getattr(given, "backend_tokenizer", None)
        if not _has(backend, "encode_batch"):
            return _SlowTransformers(given, add_special_tokens)
        return _HuggingFace(backend, add_special_tokens, getattr(given, "eos_token_id", None))
    if not has or isinstance(given, type):
        raise ConfigError(
            f"{where}: tokenizer must be a path, or a tokenizer of tokenizers, tiktoken, sentencepiece or "
            f"transformers, not {given!r:.200}"
        )
    if has[0] == "encode_ordinary":
        return _Tiktoken(given)
    if has[0] == "EncodeAsIds":
        return _SentencePiece(given)
    is_hugging_face = has[0] == "encode_batch" and _has(given, "get_vocab")
    return _HuggingFace(given, add_special_tokens) if is_hugging_face else _Plain(given)


def _has(given: Any, name: str) -> bool:
    return callable(getattr(given, name, None))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _pickled(own: Any) -> bytes:
    try:
        return pickle.dumps(own)
    except Exception:  # such as objects of local classes, which only run in this process
        return f"{type(own).__module__}.{type(own).__qualname__}".encode()


class _HuggingFace:
    """A ``tokenizers.Tokenizer``. `encode_batch` releases the GIL, `encode` does not."""

    library = "tokenizers"

    def __init__(self, given: Any, add_special_tokens: bool, end: int | None = None) -> None:
        own = copy.deepcopy(given)
        for name in ("no_padding", "no_truncation"):
            if _has(own, name):
                getattr(own, name)()
        self._copies = Copies(own)
        self._special = add_special_tokens
        self.end_id = end
        vocabulary = own.get_vocab()
        self._vocabulary: dict[str, int] = vocabulary
        self.size: int | None = max(vocabulary.values(), default=-1) + 1  # ids may have gaps
        self._fast = _has(own, "encode_batch_fast")  # the same ids, without offsets
        self.digest_is_exact = _has(own, "to_str")

    def encode(self, texts: Sequence[str]) -> list[Any]:
        return self._encoded(texts, self._special)

    def encode_rendered(self, texts: Sequence[str]) -> list[Any]:
        return self._encoded(texts, False)

    def _encoded(self, texts: Sequence[str], special: bool) -> list[Any]:
        with self._copies.one() as own:
            call = own.encode_batch_fast if self._fast else own.encode_batch
            return [made.ids for made in call(list(texts), add_special_tokens=special)]

    def located(self, text: str) -> Located | None:
        with self._copies.one() as own:
            (made,) = own.encode_batch([text], add_special_tokens=False)
        begins, ends = zip(*made.offsets, strict=True) if made.offsets else ((), ())
        return Located(made.ids, list(begins), list(ends))

    def token_id(self, token: str) -> int | None:
        return self._vocabulary.get(token)

    def digest(self) -> str:
        with self._copies.one() as own:
            return _sha256(own.to_str().encode() if _has(own, "to_str") else _pickled(own))


class _Tiktoken:
    """A ``tiktoken.Encoding``, which is immutable and releases the GIL."""

    library = "tiktoken"
    digest_is_exact = True

    def __init__(self, given: Any) -> None:
        self._copies = Copies(_Shared(given))
        self.size: int | None = int(given.n_vocab)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        with self._copies.one() as own:
            return [own.tokenizer.encode_ordinary(text) for text in texts]

    def encode_rendered(self, texts: Sequence[str]) -> list[Any]:
        with self._copies.one() as own:
            return [own.tokenizer.encode(text, allowed_special="all") for text in texts]

    def located(self, text: str) -> Located | None:
        return None

    def token_id(self, token: str) -> int | None:
        with self._copies.one() as own:
            try:
                return int(own.tokenizer.encode_single_token(token))
            except KeyError:
                return None

    @property
    def end_id(self) -> int | None:
        with self._copies.one() as own:
            try:
                return int(own.tokenizer.eot_token)
            except KeyError:
                return None

    def digest(self) -> str:
        with self._copies.one() as own:
            ranks, specials = own.tokenizer._mergeable_ranks, own.tokenizer._special_tokens
            return _sha256(repr((own.tokenizer._pat_str, sorted(ranks.items()), sorted(specials.items()))).encode())


class _SentencePiece:
    """A ``sentencepiece.SentencePieceProcessor``, whose encoding is constant and releases the GIL. It adds the tokens
    that its constructor's ``add_bos`` and ``add_eos`` name.
    """

    library = "sentencepiece"
    digest_is_exact = True

    def __init__(self, given: Any) -> None:
        self._copies = Copies(_Shared(given))
        self.size: int | None = int(given.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[Any]:
        with self._copies.one() as own:
            return list(own.tokenizer.encode(list(texts), out_type=int, num_threads=1))

    def encode_rendered(self, texts: Sequence[str]) -> list[Any]:
        with self._copies.one() as own:
            return list(own.tokenizer.encode(list(texts), out_type=int, num_threads=1, add_bos=False, add_eos=False))

    def located(self, text: str) -> Located | None:
        return None

    def token_id(self, token: str) -> int | None:
        with self._copies.one() as own:
            found = int(own.tokenizer.piece_to_id(token))
            return found if own.tokenizer.id_to_piece(found) == token else None

    @property
    def end_id(self) -> int | None:
        with self._copies.one() as own:
            found = int(own.tokenizer.eos_id())
            return found if found >= 0 else None

    def digest(self) -> str:
        with self._copies.one() as own:
            adds = [name for name in ("_add_bos", "_add_eos") if getattr(own.tokenizer, name, False)]
            return _sha256(own.tokenizer.serialized_model_proto() + "".join(adds).encode())


class _SlowTransformers:
    """A transformers tokenizer that is written in Python, which holds the GIL."""

    library = "transformers"
    digest_is_exact = False

    def __init__(self, given: Any, add_special_tokens: bool) -> None:
        self._copies = Copies(copy.deepcopy(given))
        self._special = add_special_tokens
        self.size: int | None = max(given.get_vocab().values(), default=-1) + 1
        self.end_id = given.eos_token_id

    def encode(self, texts: Sequence[str]) -> list[Any]:
        return self._encoded(texts, self._special)

    def encode_rendered(self, texts: Sequence[str]) -> list[Any]:
        return self._encoded(texts, False)

    def _encoded(self, texts: Sequence[str], special: bool) -> list[Any]:
        with self._copies.one() as own:
            made = own(list(texts), add_special_tokens=special, padding=False, truncation=False)
            return list(made["input_ids"])

    def located(self, text: str) -> Located | None:
        return None

    def token_id(self, token: str) -> int | None:
        with self._copies.one() as own:
            found: int | None = own.get_vocab().get(token)
            return found

    def digest(self) -> str:
        with self._copies.one() as own:
            return _sha256(repr((type(own).__qualname__, sorted(own.get_vocab().items()))).encode())


class _Plain:
    """Any other object with ``encode(text)``, which returns token ids."""

    digest_is_exact = False

    def __init__(self, given: Any) -> None:
        self._copies = Copies(copy.deepcopy(given))
        self.library = type(given).__qualname__
        size = getattr(given, "vocab_size", getattr(given, "n_vocab", None))
        self.size = size if isinstance(size, int) else None
        self.end_id = getattr(given, "eos_token_id", None)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        with self._copies.one() as own:
            encode: Callable[[str], Any] = own.encode
            return [encode(text) for text in texts]

    def encode_rendered(self, texts: Sequence[str]) -> list[Any]:
        return self.encode(texts)

    def located(self, text: str) -> Located | None:
        return None

    def token_id(self, token: str) -> int | None:
        return None

    def digest(self) -> str:
        with self._copies.one() as own:
            return _sha256(_pickled(own))


class _Shared:
    """An immutable tokenizer, which all threads share."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def __deepcopy__(self, memo: dict[int, Any]) -> _Shared:
        return self
