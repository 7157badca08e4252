# SPDX-License-Identifier: Apache-2.0
"""Megatron's token files, and pack_sequences."""

import struct

import feedline
from messages.expressions import functions
from messages.samples import Samples


def _index(s: Samples, code: int = 4, lengths: tuple[int, ...] = (2, 0, 3), tokens: int = 5) -> str:
    """Writes zeros as tokens, and an index with one document per sequence."""
    offsets = [4 * sum(lengths[:i]) for i in range(len(lengths))]
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1)
    n = len(lengths)
    body = struct.pack(f"<{n}i{n}q{n + 1}q", *lengths, *offsets, *range(n + 1))
    s.write("t.bin", bytes(4 * tokens))
    return s.write("t.idx", head + body)


def _an_index_of_floats(s: Samples) -> None:
    feedline.open(_index(s, code=7))


def _an_index_of_an_unknown_dtype(s: Samples) -> None:
    feedline.open(_index(s, code=9))


def _an_index_with_a_negative_length(s: Samples) -> None:
    feedline.open(_index(s, lengths=(2, -1, 3)))


def _an_index_that_is_truncated(s: Samples) -> None:
    path = _index(s)
    with open(path, "rb") as file:
        data = file.read()
    feedline.open(s.write("t.idx", data[:-1]))


def _an_index_of_another_bin_file(s: Samples) -> None:
    feedline.open(_index(s, tokens=6))


def _fields_of_an_index(s: Samples) -> None:
    feedline.open(_index(s), fields="tokens")


def _documents_of_a_folder(s: Samples) -> None:
    feedline.open(s.folder, documents=True)


def _documents_that_are_not_a_bool(s: Samples) -> None:
    feedline.open(_index(s), documents=3)


def _packing_without_lists_of_integers(s: Samples) -> None:
    import numpy as np

    feedline.arrays(x=np.zeros((3, 4))).pack_sequences()


def _packing_two_lists_of_integers(s: Samples) -> None:
    import numpy as np

    tokens = feedline.ragged(np.zeros(4, np.int32), [1, 3])
    feedline.arrays(x=tokens, y=tokens).pack_sequences()


def _packing_a_loss_mask_of_other_lengths(s: Samples) -> None:
    import numpy as np

    tokens, mask = feedline.ragged(np.ones(4, np.int32), [1, 3]), feedline.ragged(np.ones(4, bool), [2, 2])
    feedline.arrays(input_ids=tokens, loss_mask=mask).pack_sequences()


def _packing_labels_that_are_classes(s: Samples) -> None:
    import numpy as np

    tokens = feedline.ragged(np.ones(4, np.int32), [1, 3])
    feedline.arrays(input_ids=tokens, labels=np.arange(2)).pack_sequences()


def _packing_labels_that_are_not_tokens(s: Samples) -> None:
    import numpy as np

    tokens, labels = (feedline.ragged(np.array(values), [1, 3]) for values in ([1, 2, 3, 4], [1, 2, -7, 4]))
    list(feedline.arrays(input_ids=tokens, labels=labels).pack_sequences(8).loader(1, output="numpy"))


def _packing_a_field_that_does_not_exist(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(field="text")


def _packing_a_field_of_numbers(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(field="tokens_length")


def _packing_after_an_operation(s: Samples) -> None:
    s.images.resize(8).pack_sequences()


def _packing_after_map(s: Samples) -> None:
    s.images.map(lambda image: image, "image").pack_sequences()


def _rows_of_one_token(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(1)


def _rows_that_are_too_long(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(2**40)


def _an_unknown_method(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, "first_fit")


def _an_unknown_handling_of_long_documents(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, long="cut")


def _concatenation_without_splitting(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, "concat", long="drop")


def _a_window_of_no_documents(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, window=0)


def _unknown_labels(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, labels="shifted")


def _a_pad_outside_the_vocabulary(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, pad=9, vocabulary=9)


def _a_field_name_that_is_not_text(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, field=3)


def _a_length_that_padded_documents_do_not_fill(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, pad_to_multiple_of=3)


def _an_unknown_preset(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8).loader(1, preset="trl")


def _a_preset_with_numpy_arrays(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8).loader(1, preset="thd", output="numpy")


def _a_preset_that_needs_other_labels(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8, labels="input_ids").loader(1, preset="megatron")


def _a_batch_of_too_many_tokens(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(2**20).loader(2048)


def _weights_of_packed_sequences(s: Samples) -> None:
    feedline.open(_index(s)).pack_sequences(8).loader(1, output="numpy").set_weights([1])


def _a_token_outside_the_vocabulary(s: Samples) -> None:
    dataset = feedline.open(_index(s))
    s.write("t.bin", bytes(16) + b"\x0b\0\0\0")
    list(dataset.pack_sequences(8, vocabulary=9).loader(1, output="numpy"))


def _a_state_of_other_rows(s: Samples) -> None:
    dataset = feedline.open(_index(s))
    state = dataset.pack_sequences(8).loader(1, output="numpy").state_dict()
    dataset.pack_sequences(16).loader(1, output="numpy").load_state_dict(state)


def _a_state_with_a_damaged_position(s: Samples) -> None:
    loader = feedline.open(_index(s)).pack_sequences(8).loader(1, output="numpy")
    loader.load_state_dict({**loader.state_dict(), "packing": {"window": 7, "pack": 1}})


CASES = functions(globals())
