# SPDX-License-Identifier: Apache-2.0
"""Writes pillow_golden.inc: checksums of what Pillow 13 and numpy make of images that pillow_golden_test.cpp makes too.

Run with Pillow 13 installed: python src/transform/pillow_golden.py > src/transform/pillow_golden.inc
"""

import numpy as np
import PIL
from PIL import Image, ImageEnhance, ImageOps

FILTERS = [
    ("kNearest", Image.Resampling.NEAREST),
    ("kBox", Image.Resampling.BOX),
    ("kBilinear", Image.Resampling.BILINEAR),
    ("kBicubic", Image.Resampling.BICUBIC),
]
SIZES = [  # in width, in height, out width, out height
    (300, 260, 224, 224),
    (300, 260, 224, 260),
    (300, 260, 300, 224),
    (13, 7, 224, 224),
    (1, 1, 5, 3),
    (1, 97, 1, 10),
    (97, 1, 10, 1),
    (333, 251, 97, 83),
    (640, 480, 31, 17),
    (50, 40, 51, 41),
    (17, 19, 16, 20),
    (64, 64, 32, 128),
    (40, 400, 36, 60),
    (3, 380, 2, 100),
    (500, 31, 11, 200),
    (129, 65, 65, 33),
    (160, 160, 130, 115),  # the last four: around the order of passes
    (160, 160, 130, 100),
    (160, 161, 130, 100),
    (30, 50, 50, 45),
]


def image(width: int, height: int, channels: int, seed: int) -> Image.Image:
    """A linear congruential generator's high bytes, or where seed is odd only their extremes."""
    count = width * height * channels
    out = bytearray(count)
    state = seed
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        value = state >> 24
        out[i] = value if seed % 2 == 0 else 255 if value > 127 else 0
    return Image.frombytes("RGB" if channels == 3 else "L", (width, height), bytes(out))


def checksum(picture: Image.Image | np.ndarray) -> str:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in np.ascontiguousarray(picture).tobytes():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"0x{value:016X}u"


def adjust_hue(picture: Image.Image, factor: float) -> Image.Image:
    """torchvision's adjust_hue for PIL images."""
    h, s, v = picture.convert("HSV").split()
    shifted = np.asarray(h) + np.int32(factor * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(shifted.astype(np.uint8)), s, v)).convert("RGB")


def main() -> None:
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by pillow_golden.py with Pillow {PIL.__version__} and numpy {np.__version__}.")
    print("\nconstexpr ResizeCase kResizeCases[] = {")
    for width, height, out_width, out_height in SIZES:
        for channels in (3, 1):
            for name, resample in FILTERS:
                seed = width + out_height * 2 + channels
                result = image(width, height, channels, seed).resize((out_width, out_height), resample)
                print(
                    f"    {{{width}, {height}, {channels}, {seed}, {out_width}, {out_height}, Interpolation::{name}, "
                    f"{checksum(result)}}},"
                )
    print("};\n\nconstexpr JitterCase kJitterCases[] = {")
    enhancers = [ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color]
    for channels in (3, 1):
        picture = image(61, 47, channels, 8)
        for which, enhancer in enumerate(enhancers):
            for factor in (0.0, 0.3, 0.999, 1.0, 1.7, 4.0):
                print(f"    {{{channels}, {which}, {factor}, {checksum(enhancer(picture).enhance(factor))}}},")
        for factor in (-0.5, -0.21, 0.0, 0.003, 0.33, 0.5):
            result = adjust_hue(picture, factor) if channels == 3 else picture
            print(f"    {{{channels}, 3, {factor}, {checksum(result)}}},")
    print("};\n\nconstexpr PadCase kPadCases[] = {")
    for channels in (3, 1):
        for width, height in ((9, 6), (1, 4), (2, 1)):
            picture = image(width, height, channels, 20)
            for left, top, right, bottom in ((2, 3, 1, 0), (0, 0, 0, 5), (30, 17, 25, 40)):
                fill = (200, 7, 90) if channels == 3 else 200
                border = f"{{{left}, {top}, {right}, {bottom}}}"
                result = ImageOps.expand(picture, (left, top, right, bottom), fill)
                print(f"    {{{width}, {height}, {channels}, {border}, PaddingMode::kConstant, {checksum(result)}}},")
                for name, mode in (("kEdge", "edge"), ("kReflect", "reflect"), ("kSymmetric", "symmetric")):
                    widths = [(top, bottom), (left, right)] + ([(0, 0)] if channels == 3 else [])
                    result = np.pad(np.asarray(picture), widths, mode)
                    print(f"    {{{width}, {height}, {channels}, {border}, PaddingMode::{name}, {checksum(result)}}},")
    print("};\n")
    print(f"constexpr std::uint64_t kGreyOfRgb = {checksum(image(61, 47, 3, 8).convert('L'))};")


if __name__ == "__main__":
    main()
