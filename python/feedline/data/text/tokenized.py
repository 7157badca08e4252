# SPDX-License-Identifier: Apache-2.0
"""The method :meth:`Dataset.tokenize`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self


class Tokenized:
    """The methods of :class:`Dataset` that turn text into tokens."""

    def tokenize(
        self,
        tokenizer: Any,
        field: str | None = None,
        *,
        messages: str | None = None,
        tools: str | None = "tools",
        chat_template: str | os.PathLike[str] | None = None,
        template_arguments: Mapping[str, Any] | None = None,
        max_length: int | None = None,
        append_eod: bool = False,
        eod: str | int | None = None,
        add_special_tokens: bool = True,
        processes: int = 0,
        images: str | Sequence[str] | None = None,
    ) -> Self:
        """Turns text or conversations into token ids while loading.

        The text field is replaced by ``input_ids``, int64 of shape (tokens,). Batches are padded with zeros to (rows,
        longest), followed by ``input_ids_length``; ``collate("list", fields="input_ids")`` does not pad. Other fields
        do not change.

        Conversations (``messages=``) also get ``loss_mask``, bool of shape (tokens,), which is True for the tokens of
        assistant messages; padding is False. The chat template renders the conversation, and no further special tokens
        are added. If the template has ``{% generation %}`` blocks, tokens that overlap one are True. Otherwise, a
        message's tokens are those after its generation prompt up to the message's end, which are found by rendering
        the messages before it; both must be prefixes of the whole conversation's tokens. A mask that is empty, or that
        covers other roles' messages, raises an error.

        Threads of the loader call the tokenizer, each with a copy; ``tokenizers``, ``tiktoken`` and ``sentencepiece``
        release the GIL. The passed object, its padding and its truncation do not change. A forked process raises an
        error.

        Args:
            tokenizer: path of a ``tokenizer.json``, of a sentencepiece model (``.model``), or of a model's folder; or
                an object of tokenizers, tiktoken, sentencepiece or transformers, or one with ``encode(text)``.
            field: field with the text, by default ``"text"``.
            messages: field with a conversation instead of a text: JSON with a list of objects that have ``role`` and
                ``content``, and optionally ``tool_calls``, whose arguments may be objects or JSON text.
            tools: field with the definitions of a conversation's tools, if the dataset has it: a list, or JSON text
                with a list.
            chat_template: template text, or a path, instead of the template of the model's folder or of the object.
            template_arguments: variables of the template, such as ``{"enable_thinking": False}``.
            max_length: maximum number of tokens; later tokens are cut off, with their mask. A conversation in which no
                assistant tokens remain raises an error.
            append_eod: appends the end-of-document token to a text, before truncation.
            eod: this token, or its id; by default the tokenizer's end-of-sequence token.
            add_special_tokens: whether tokenizers and transformers add their special tokens to a text, such as BOS.
            processes: as for :meth:`map`, for tokenizers and templates that hold the GIL.
            images: field with the images of the conversation, or several fields: encoded images, paths, objects with
                ``bytes`` or ``path``, or lists of them. The tokenizer is then the folder of a vision-language model.
                Samples get ``pixel_values`` (float32), the images' inputs of the vision encoder, concatenated, and
                ``image_grid_thw`` or ``image_sizes`` (int64, a row per image) if the model needs it. See
                docs/vision-language.md.

        Raises:
            ConfigError: the tokenizer or the template does not exist or cannot be loaded, a required package is
                missing, or an argument is wrong. ``loader()`` and the first sample raise this error if the field does
                not exist, or if the dataset already has a field ``input_ids`` or ``loss_mask``.
            DataError: a text has no tokens, a message has no role, the template raises an exception, or the mask is
                empty; raised when the sample is read, subject to ``on_error``.
        """
        from ..vision.sample_images import folder_of_dataset
        from .token_functions import token_function  # imports modules that only tokens need
        from .tokenizing import IDS, MASK, ChatTokens

        dataset: Any = self
        function = token_function(
            "tokenize",
            tokenizer,
            field,
            messages=messages,
            tools=tools,
            chat_template=chat_template,
            template_arguments=template_arguments,
            max_length=max_length,
            append_eod=append_eod,
            eod=eod,
            add_special_tokens=add_special_tokens,
            images=images,
            folder=folder_of_dataset(dataset) if images is not None else None,
        )
        made = [IDS, MASK] if isinstance(function, ChatTokens) else [IDS]
        tokenized: Any = dataset.map(function, processes=processes).collate("pad", fields=made)
        if isinstance(function, ChatTokens) and function.has_images:
            tokenized = tokenized.collate("list", fields=list(function.image_fields))
            tokenized._preceding = dataset
        result: Self = tokenized
        return result
