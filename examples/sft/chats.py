# SPDX-License-Identifier: Apache-2.0
"""Makes chats, and the folder of a tiny chat model: a tokenizer that is trained on them, and a random Qwen2."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tokenizers
import transformers

CHATML = """\
{%- for message in messages %}
<|im_start|>{{ message.role }}
{% if message.role == 'assistant' -%}
{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}

{% else -%}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LISTS = [
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "January February March April May June July August September October November December",
    "one two three four five six seven eight nine ten eleven twelve",
]


def chats(count: int, seed: int) -> Iterator[list[dict[str, str]]]:
    """Yields conversations of one to five questions, each with one correct answer."""
    drawn = random.Random(seed)
    for _ in range(count):
        talk = [{"role": "system", "content": "You answer in one sentence."}] if drawn.random() < 0.5 else []
        for _ in range(drawn.randint(1, 5)):
            question, answer = question_of(drawn)
            talk += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        yield talk


def question_of(drawn: random.Random) -> tuple[str, str]:
    words = drawn.choice(LISTS).split()
    at = drawn.randrange(1, len(words) - 1)
    where = drawn.choice(["after", "before"])
    answer = words[at + 1] if where == "after" else words[at - 1]
    return f"What comes {where} {words[at]}?", f"{answer} comes {where} {words[at]}."


def write_chats(path: Path, count: int, seed: int) -> None:
    with path.open("w") as file:
        for talk in chats(count, seed):
            file.write(json.dumps({"messages": talk}) + "\n")


def write_model(folder: Path, texts: Path) -> None:
    """Writes tokenizer.json, tokenizer_config.json and the model, whose weights are random."""
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=512, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    contents = (one["content"] for line in texts.open() for one in json.loads(line)["messages"])
    bpe.train_from_iterator(contents, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML
    )
    tokenizer.save_pretrained(folder)
    transformers.set_seed(1)
    new_model(bpe.get_vocab_size()).save_pretrained(folder)


def new_model(vocabulary: int) -> Any:
    config = transformers.Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        use_cache=False,
        tie_word_embeddings=True,
    )
    return transformers.Qwen2ForCausalLM(config)
