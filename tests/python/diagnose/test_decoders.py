# SPDX-License-Identifier: Apache-2.0
"""Decoding is recognised for formats that classes of Pillow decode in one of their own methods."""

import pytest
from watched import watched

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")
Image = pytest.importorskip("PIL.Image", reason="Pillow, which makes the images, is not installed")
features = pytest.importorskip("PIL.features")

SCRIPT = """
import io, torch
from PIL import Image
image = Image.effect_noise((700, 700), 60).convert("RGB")
encoded = io.BytesIO()
image.save(encoded, {name!r}, **{options!r})
class Photos(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        with Image.open(io.BytesIO(encoded.getvalue())) as photo:
            return torch.tensor(photo.convert("L").getpixel((0, 0)))
for batch in torch.utils.data.DataLoader(Photos(), batch_size=2):
    pass
"""
FORMATS = {"JPEG": {}, "PNG": {}, "WEBP": {"quality": 90}, "TIFF": {"compression": "jpeg"}}


@pytest.mark.parametrize("name", FORMATS)
def test_decoding_is_known(name, tmp_path):
    if not features.check({"WEBP": "webp", "TIFF": "libtiff"}.get(name, "jpg")):
        pytest.skip(f"this Pillow has no {name}")
    status, _, _, found = watched(tmp_path, SCRIPT.format(name=name, options=FORMATS[name]), "--quick")
    assert status == 0
    stages = found["summary"]["making"]["stages"]
    # The first collation does not count: on a busy machine, it may take longer than all decoding.
    assert stages["decode"] > 2 * (stages["python"] + stages["transform"])


def test_reading_the_header_is_decoding(tmp_path):
    script = SCRIPT.format(name="JPEG", options={}).replace('photo.convert("L").getpixel((0, 0))', "photo.width")
    assert "photo.width" in script
    status, _, _, found = watched(tmp_path, script.replace("return 64", "return 512"), "--quick")
    stages = found["summary"]["making"]["stages"]
    assert status == 0 and stages["decode"] > stages["python"] / 2  # the first collation may take most of the time
