#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# litdata 0.2.76 and datasets 5.2.0 store the file from which Pillow opened a JPEG instead of the image that they are given, so
# that changes in place, such as thumbnail() or a rectangle drawn over a face, are lost without a warning. Methods that return
# a new image, such as resize(), are not affected.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install litdata==0.2.76 datasets==5.2.0 torch==2.13.0 numpy==2.4.6 pillow==12.3.0
python -m pip uninstall -qy torchvision # installed by litdata, for other builds of torch

cat >write.py <<'PYTHON'
import io

import datasets
import litdata
from PIL import Image

Image.new("RGB", (64, 48), "red").save("photo.jpg")


def small(_):
    image = Image.open("photo.jpg")
    image.thumbnail((16, 16))
    return {"image": image}


if __name__ == "__main__":
    print("in memory:", small(0)["image"].size)
    litdata.optimize(small, [0], "out", num_workers=1, chunk_size=1)
    chunk = open("out/chunk-0-0.bin", "rb").read()
    print("litdata:", Image.open(io.BytesIO(chunk[chunk.index(b"\xff\xd8") :])).size)
    rows = datasets.Dataset.from_list([small(0)])
    print("datasets:", rows[0]["image"].size)
    rows = datasets.Dataset.from_dict({"number": [0]})
    features = datasets.Features(number=datasets.Value("int64"), image=datasets.Image())
    print("datasets, map:", rows.map(small, features=features)[0]["image"].size)
PYTHON
python write.py 2>/dev/null | grep -E "^(in memory|litdata|datasets)" | expect "in memory: (16, 12)
litdata: (64, 48)
datasets: (64, 48)
datasets, map: (64, 48)"
