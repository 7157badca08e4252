// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"

namespace feedline::format {

// Writes what a frame of LZ4 holds to `out`. kData: it is damaged or cut, or makes another number of bytes.
Result<void> unpack_lz4_frame(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace feedline::format
