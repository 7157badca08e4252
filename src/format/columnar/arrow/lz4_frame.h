// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"

namespace feedline::format {

// Decompresses an LZ4 frame to `out`. Fails with kData if the frame is damaged or truncated, or its content does not
// have exactly the size of `out`.
Result<void> unpack_lz4_frame(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace feedline::format
