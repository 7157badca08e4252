// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an encoded image's header says of how it is stored, for who looks through a dataset. Stateless and thread-safe.

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

// A JPEG that every decoder takes for the same: sequential, by Huffman's code, 8 bits, and colours that can only be
// YCbCr, which its header says in one way only. Its end marker is there, so it is not cut off.
bool is_plain_colour_jpeg(std::span<const std::byte> file);

}  // namespace feedline::decode
