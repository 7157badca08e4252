// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes how an image is stored, from its header, for dataset inspection. Stateless and thread-safe.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "decode/decoder.h"

namespace feedline::decode {

// In the order of this list: "progressive", "arithmetic coding", "lossless" and "CMYK" of JPEGs, "palette" and
// "interlaced" of PNGs, and "16 bits" or "12 bits" a sample. Nothing of other formats, and of headers that make no
// sense.
std::vector<std::string_view> storage_traits(ImageFormat format, std::span<const std::byte> file);

// A JPEG that all decoders interpret alike: sequential, Huffman-coded, 8 bits, and unambiguously YCbCr. It has an end
// marker, so it is not truncated.
bool is_plain_colour_jpeg(std::span<const std::byte> file);

}  // namespace feedline::decode
