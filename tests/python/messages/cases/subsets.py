# SPDX-License-Identifier: Apache-2.0
"""split, subset, filter, mix, views, map, labels, targets."""

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples, read


def _a_function_that_returns_another_shape(s: Samples) -> None:
    read(s.numbers.map(lambda x, y: (x[: 1 + y % 2], y), ("x", "y")))


def _a_function_that_returns_another_field(s: Samples) -> None:
    read(s.numbers.map(lambda sample: {"x": sample["x"]} if sample["y"] == 0 else {"z": sample["x"]}))


def _a_function_that_raises(s: Samples) -> None:
    def divide(x: object) -> object:
        return 1 / 0

    s.numbers.map(divide, "x")[0]


def _a_list_that_another_process_cannot_import(s: Samples) -> None:
    class Local:
        def __reduce__(self) -> object:
            raise TypeError("not today")

    feedline.shared([Local()])


def _a_key_of_several_samples(s: Samples) -> None:
    for name in ("a.tar", "b.tar"):
        s.write_tar(("k.jpg", s.jpeg), ("k.cls", "0"), name=name)
    feedline.open("here/{a,b}.tar").subset(keys=["k"])


def _a_label_without_a_class_name(s: Samples) -> None:
    members = [("__classes__", "cat\ndog"), ("a.jpg", s.jpeg), ("a.cls", "2")]
    feedline.open(s.write_tar(*members)).class_counts()


CASES = {
    **expressions("""
        images.split()
        images.split(0.5, 2)
        images.split(1.5)
        images.split(0.5, 0.9)
        images.split(0.01, 0.99)
        images.split(2, 5)
        images.split(0, 6)
        images.split("half")
        images.split(0.5, seed=-1)
        images.split(0.5, by_class=3)
        images.split(0.5, by_class="nothing")
        images.split(0.5, by_class=[])
        images.split(0.5, by_class=[0, 1])
        feedline.files(["a.jpg"] * 2, fields=("image", "tag:text"), tag=["a", "b"]).split(1, by_class="tag")
        images.split(0.5, k_fold=2)
        images.split(k_fold=2)
        images.split(k_fold=1, fold=0)
        images.split(k_fold=2, fold=2)
        images.split(k_fold=7, fold=0)
        images.split(k_fold=3, fold=0, by_class=True)
        images.split(fold=0)
        images.split(0.5, groups="label")
        images.split(k_fold=2, fold=0, groups=3)
        images.split(k_fold=2, fold=0, groups="image")
        images.split(k_fold=2, fold=0, groups=[1, 2])
        images.split(k_fold=4, fold=0, groups="label")
        images.split(k_fold=2, fold=0, groups=[0, 1, None, 0, 1, 2])
        feedline.table({"image": ["a.jpg"], "x": [[1]]}, image="image").targets("x")
        feedline.table({"image": ["a.jpg"], "x": [None]}, image="image").split(k_fold=2, fold=0, groups="x")
        feedline.table({"image": ["a.jpg"], "x": [0.5]}, image="image").split(k_fold=2, fold=0, by_class="x")
        feedline.table({"image": ["a.jpg"], "x": [1, 2]}, image="image").filter(lambda row: True)
        images.subset()
        images.subset([0], keys=["a"])
        images.subset([])
        images.subset([99])
        images.subset([-7])
        images.subset([1.5])
        images.subset("0")
        images.subset(3)
        images.subset([True, False])
        images.subset(keys=3)
        images.subset(keys=[3])
        images.subset(keys=["apple/999.jpg"])
        images.subset(keys=["apple/000"])
        images.subset(keys=lambda keys: 3)
        images.filter(3)
        images.filter([True])
        images.filter([1, 0, 1, 0, 1, 0])
        images.filter(lambda sample: sample["nothing"])
        images.filter(lambda sample: False)
        images.take(-1)
        images.take("2")
        images.take(0)
        images.repeat(0)
        images.repeat(1.5)
        feedline.mix(images)
        feedline.mix(images, images)
        feedline.mix([])
        feedline.mix(3)
        feedline.mix([images, "data/train"])
        feedline.mix([images, numbers])
        feedline.mix([images, small])
        feedline.mix([images, images], weights=[1])
        feedline.mix([images, images], weights=[])
        feedline.mix([images, images], weights="both")
        feedline.mix([images, images], weights=[1, -1])
        feedline.mix([images, images], weights=[0, 0])
        feedline.mix([images, images], weights=[1, nan])
        feedline.mix([images, images], until="first", samples=4)
        feedline.mix([images, images], until="all")
        feedline.mix([images, images], samples=0)
        feedline.mix([feedline.mix([images, images]), images])
        feedline.mix([small.cache("memory"), small])
        feedline.mix([small.map(len, "image"), small])
        feedline.mix([images.collate("list"), images.collate("list")])
        feedline.mix([images, images]).split(0.5)
        feedline.mix([images, images]).subset([0])
        feedline.mix([images, images]).resize((8, 8)).loader(2, output="numpy", repeat=2)
        feedline.mix([images, images]).resize((8, 8)).loader(2, output="numpy", shuffle="shards")
        feedline.mix([images, images]).resize((8, 8)).loader(2, output="numpy", weights=[1] * 12)
        feedline.mix([lengths, lengths]).loader(2, output="numpy", buckets=[6])
        images.views()
        images.views(3)
        images.views([])
        images.views([3])
        images.views([chain(), (chain(), 0)])
        images.views([(chain(), 2, 3)])
        images.views([chain()], a=chain())
        images.views([chain()], field=3)
        images.views([chain()], field="mask")
        images.views([chain().decode("L")])
        images.views([chain().resize((8, 8)).color_jitter(0.5).normalize((0.5,) * 2, (0.5,) * 2)])[0]
        images.views([chain().resize((8, 8), fields="image")])
        images.views(label=chain())
        images.views([chain()]).views([chain()])
        images.views([(chain().resize((8, 8)), 10_000)])
        images.normalize((0.5,) * 3, (0.5,) * 3).views([chain()])
        numbers.views([chain()])
        images.random_iou_crop().views([chain()])
        images.map(3)
        images.map(len, "nothing")
        images.map(len, ("image", "image"))
        images.map(len, 3)
        images.map(len, "image", processes=-1)
        images.map(len, "image", processes="two")
        images.map(lambda image: image, "image", processes=1)
        images.map(len, "image", seeded=1)
        images.map(len, "image", writable="yes")
        numbers.map(lambda x: None, "x")[0]
        numbers.map(lambda x: object, "x")[0]
        numbers.map(lambda x: {"a": {1, 2}}, "x")[0]
        numbers.map(lambda x: 2**70, "x")[0]
        numbers.map(lambda x: np.array(["a"]), "x")[0]
        numbers.map(lambda x: np.zeros(2, object), "x")[0]
        numbers.map(lambda x: np.zeros((1,) * 20), "x")[0]
        numbers.map(lambda x, y: x, ("x", "y"))[0]
        numbers.map(lambda x, y: (x,), ("x", "y"))[0]
        numbers.map(lambda sample: 3)[0]
        numbers.map(lambda sample: {3: 1})[0]
        numbers.map(lambda sample: {"x": sample["x"]}).map(lambda y: y, "y")[0]
        small.map(lambda image: image, "image").resize((4, 4))
        lengths.map(lambda x: x, "x")
        images.targets("nothing")
        images.targets(3)
        images.targets("image")
        feedline.arrays(x=np.zeros((3, 2), np.float32)).labels
        feedline.arrays(a=np.arange(3), b=np.arange(3)).labels
        feedline.arrays(label=np.array([0.5, 1, 2])).labels
    """),
    **functions(globals()),
}
