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

}  // namespace feedline::decode
