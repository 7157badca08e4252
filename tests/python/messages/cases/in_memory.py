# SPDX-License-Identifier: Apache-2.0
"""files, table, arrays, ragged and tokens."""

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples


def _an_array_that_was_moved(s: Samples) -> None:
    import torch

    tensor = torch.zeros(4, 2)
    dataset = feedline.arrays(x=tensor)
    tensor.share_memory_()
    dataset[0]


def _a_column_that_the_file_cannot_give(s: Samples) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"image": ["1.jpg"], "wide": pa.array([1], pa.decimal128(30, 2))})
    pq.write_table(table, s.write("t.parquet", ""))
    feedline.table("here/t.parquet", image="image", label="wide")


def _two_columns_of_one_name(s: Samples) -> None:
    import pyarrow as pa

    feedline.table(pa.Table.from_arrays([["1.jpg"], [1], [2]], ["image", "label", "label"]))


def _damaged_text_of_arrow(s: Samples) -> None:
    import numpy as np
    import pyarrow as pa

    offsets = pa.py_buffer(np.array([0, 5, 2, 10], np.int32))
    feedline.table(pa.table({"image": pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"1.jpg2.jpg"))}))


def _a_token_file_without_dtype(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2)


def _a_token_file_of_odd_size(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(63)), window=2, dtype="uint16")


def _a_token_outside_the_vocabulary(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(62) + b"\x9e\0"), window=2, dtype="uint16", vocabulary=9, check=True)


def _tokens_without_separator(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, dtype="uint16", documents="apart")


def _a_separator_that_the_files_lack(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, dtype="uint16", documents="apart", separator=5)


def _a_separator_outside_the_vocabulary(s: Samples) -> None:
    path = s.write("t.bin", bytes(64))
    feedline.tokens(path, window=2, dtype="uint16", documents="apart", separator=50, vocabulary=9)


def _a_pad_of_packed_windows(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, dtype="uint16", documents="pack", separator=0, pad=1)


def _a_window_longer_than_the_file(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=100, dtype="uint16")


def _a_window_of_zero(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=0, dtype="uint16")


def _a_stride_of_zero(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, stride=0, dtype="uint16")


def _tokens_of_a_dtype_of_floats(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, dtype="float32")


def _tokens_delivered_as_floats(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, dtype="uint16", output_dtype="float32")


def _a_documents_word_that_is_unknown(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, dtype="uint16", documents="split", separator=0)


def _a_check_without_vocabulary(s: Samples) -> None:
    feedline.tokens(s.write("t.bin", bytes(64)), window=2, dtype="uint16", check=True)


def _a_npy_of_another_dtype(s: Samples) -> None:
    import numpy as np

    np.save("here/t.npy", np.arange(9, dtype=np.int32))
    feedline.tokens("here/t.npy", window=2, dtype="uint16")


def _two_npys_of_different_dtypes(s: Samples) -> None:
    import numpy as np

    np.save("here/a.npy", np.arange(9, dtype=np.int32))
    np.save("here/b.npy", np.arange(9, dtype=np.uint16))
    feedline.tokens(["here/a.npy", "here/b.npy"], window=2)


def _a_npy_of_two_dimensions(s: Samples) -> None:
    import numpy as np

    np.save("here/t.npy", np.zeros((3, 3), np.int32))
    feedline.tokens("here/t.npy", window=2)


def _a_sparse_tensor(s: Samples) -> None:
    import torch

    feedline.arrays(x=torch.eye(3).to_sparse())


CASES = {
    **expressions("""
        feedline.arrays()
        feedline.arrays(x=3)
        feedline.arrays(x=[1, 2])
        feedline.arrays(x="text")
        feedline.arrays(x=np.float32(3))
        feedline.arrays(x=np.zeros((3, 0)))
        feedline.arrays(x=np.zeros((0, 2)))
        feedline.arrays(x=np.zeros(3), y=np.zeros(4))
        feedline.arrays(x=np.zeros(3, ">f4"))
        feedline.arrays(x=np.zeros((3, 4))[:, ::2])
        feedline.arrays(x=np.zeros(3, object))
        feedline.arrays(x=np.array(["a", "b"]))
        feedline.arrays(x=np.zeros(3, complex))
        feedline.arrays(x=np.zeros((1,) * 12))
        feedline.arrays(x=np.zeros(3), fields="y")
        feedline.arrays(x=np.zeros(3), fields=3)
        feedline.arrays(x=np.zeros(3), fields=("x:array", "x:image"))
        feedline.arrays(x=np.zeros(3), fields="x:image")
        feedline.arrays(x=np.zeros((3, 5)), fields="x:boxes")
        feedline.arrays(x=np.zeros(3), fields="x:text")
        feedline.ragged([])
        feedline.ragged(3)
        feedline.ragged(["a"])
        feedline.ragged([np.zeros(2), np.zeros(3, int)])
        feedline.ragged([np.zeros(2), np.zeros((3, 2))])
        feedline.ragged([np.zeros(2)], lengths=[2])
        feedline.ragged(np.zeros(4))
        feedline.ragged(np.zeros(4), lengths=[1, 3], offsets=[0, 1, 4])
        feedline.ragged(np.zeros(4), lengths=[1, 2])
        feedline.ragged(np.zeros(4), lengths=[-1, 5])
        feedline.ragged(np.zeros(4), lengths=[0.5, 3.5])
        feedline.ragged(np.zeros(4), lengths="two")
        feedline.ragged(np.zeros(4), offsets=[])
        feedline.ragged(np.zeros(4), lengths=[4], pad_value="x")
        feedline.ragged(np.zeros(4, bool), lengths=[4], pad_value=2)
        feedline.arrays(x=feedline.ragged(np.zeros(4), offsets=[1, 4]))
        feedline.arrays(x=feedline.ragged(np.zeros(4), offsets=[0, 3, 2, 4]))
        feedline.arrays(x=feedline.ragged(np.zeros(4), offsets=[0, 3]))
        feedline.arrays(x=feedline.ragged(np.zeros(4), lengths=[0, 4]))
        feedline.files([])
        feedline.files(3)
        feedline.files("a.jpg")
        feedline.files([3])
        feedline.files([None])
        feedline.files(["a.jpg", ""])
        feedline.files(["a.jpg", 3])
        feedline.files(["a.txt"])
        feedline.files(["a.jpg"], label=[1, 2])
        feedline.files(["a.jpg"], label=3)
        feedline.files({"a.jpg"})
        feedline.files({"a.jpg": 1})
        feedline.files(["a.jpg"], label=[None])
        feedline.files(["a.jpg", "b.jpg"], label=["cat", 1])
        feedline.files(["a.jpg"], label=[nan])
        feedline.files(["a.jpg"], label=[inf])
        feedline.files(["a.jpg"], label=[2**70])
        feedline.files(["a.jpg"], label=np.array([2**63], np.uint64))
        feedline.files(["a.jpg"], label=[1], multi_label=["a"])
        feedline.files(["a.jpg"], multi_label=[3])
        feedline.files(["a.jpg"], multi_label=[{"a": 1}])
        feedline.files(["a.jpg"], multi_label=[[]])
        feedline.files(["a.jpg"], multi_label=[["a", None]])
        feedline.files(["a.jpg"], multi_label=["a b"], separator="")
        feedline.files(["a.jpg"], multi_label=["a b"], separator=3)
        feedline.files(["a.jpg"], root=3)
        feedline.files(["a.jpg"], fields="mask")
        feedline.files(["a.jpg"], fields=("image", "image"))
        feedline.files(["a.jpg"], fields=("image", "depth:png"), depth=[1])
        feedline.files(["a.jpg"], fields=("image", "text:text"), text=[1])
        feedline.files(["a.jpg"], fields=("image", "text:text"), text=[None])
        feedline.files(["a.jpg", "b.jpg"], fields=("image", "boxes"), boxes=[[[1, 2, 3, 4]], [[1, 2]]])
        feedline.files(["a.jpg"], fields=("image", "boxes"), boxes=["text"])
        feedline.files(["a.jpg"], fields=("image", "x:array"), x=[["a"]])
        feedline.files(["a.jpg"], hedge=1)
        feedline.files([[]])
        feedline.files(["no/such.jpg"])[0]
        feedline.files(["a.jpg"], cache_limit="1 GB")
        feedline.files(["a.jpg"], cache=3)
        feedline.table(3)
        feedline.table([1, 2])
        feedline.table([{"image": "a.jpg"}])
        feedline.table(["a.csv", "b.csv"])
        feedline.table({})
        feedline.table({"image": []})
        feedline.table({"image": 3})
        feedline.table({"a": [1, 2]})
        feedline.table({"a": ["x", "y"]})
        feedline.table({"image": ["a.jpg"]}, image=3)
        feedline.table({"image": ["a.jpg"]}, image="path")
        feedline.table({"image": ["a.jpg"]}, label="class")
        feedline.table({"image": ["a.jpg"]}, target="age")
        feedline.table({"image": ["a.jpg"], "age": ["old"]}, target="age")
        feedline.table({"image": ["a.jpg"], "age": [None]}, target="age")
        feedline.table({"image": ["a.jpg"], "age": [[1, 2]]}, target="age")
        feedline.table({"image": ["a.jpg"], "age": np.zeros((1, 2))}, target="age")
        feedline.table({"image": ["a.jpg"]}, multi_label="tags")
        feedline.table({"image": ["a.jpg"], "y": [1]}, label="y", multi_label="y")
        feedline.table({"image": ["a.jpg"]}, image="image", template="{image}.jpg")
        feedline.table({"id": ["a"]}, template="a.jpg")
        feedline.table({"id": ["a"]}, template="{name}.jpg")
        feedline.table({"id": ["a"]}, template="{id")
        feedline.table({"id": ["a"]}, template="{}.jpg")
        feedline.table({"id": ["a"]}, template="{id!x}.jpg")
        feedline.table({"id": ["a"]}, template=3)
        feedline.table({"id": [1.0]}, template="{id}.jpg")
        feedline.table({"id": ["a"]}, template="{id:06d}.jpg")
        feedline.table({"id": [None]}, template="{id}.jpg")
        feedline.table({"image": ["a.jpg"]}, fields="age")
        feedline.table({"image": ["a.jpg"], "x": [{"a": 1}]}, fields=("image", "x"))
        feedline.table({"image": ["a.jpg"], "x": [[1, "a"]]}, fields=("image", "x"))
        feedline.table({"image": ["a.jpg"], "x": [1]}, fields=("image", "x:colour"))
        feedline.table({"image": ["a.jpg"]}, root=3)
        feedline.table({"image": ["a.jpg"]}, root=b"data")
        feedline.table({"image": ["a.jpg"]}, separator="")
        feedline.table({"image": ["a.jpg"], "y": [1, 2]}, label="y")
        feedline.table("here/none.csv")
        feedline.table("")
        feedline.table(write("t.txt", "a,b"))
        feedline.table(write("t.csv", ""))
        feedline.table(write("t.csv", "image,label\\n"))
        feedline.table(write("t.csv", "image,label\\na.jpg\\n"))
        feedline.table(write("t.jsonl", '{"image": "a.jpg"}\\n[1]\\n'))
        feedline.table(write("t.csv", "path,y\\na.jpg,\\n"), label="y")
        feedline.tokens("here/none.bin", window=2, dtype="uint16")
        feedline.tokens([], window=2, dtype="uint16")
        feedline.files([["a.jpg", 3]])
        feedline.files([["a.jpg"] * 300])
        feedline.files(np.array("a.jpg"))
        feedline.files(["a.jpg"], fields=("image", "boxes"), boxes=[[["a", "b", "c", "d"]]])
        feedline.files(["a.jpg"], fields=("image", "text:text"), text=["\\ud800"])
        feedline.arrays(label=np.zeros((3, 2), int)).labels
        feedline.tokens("here/none.npy", window=2)
        feedline.tokens(3, window=2, dtype="uint16")
        feedline.tokens("here", window="2", dtype="uint16")
    """),
    **functions(globals()),
}
