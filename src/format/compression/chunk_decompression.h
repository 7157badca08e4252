// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"
#include "format/compression/compression.h"

namespace feedline::format {

// Like decompress_exactly(), but faster for many small blocks: each thread reuses its contexts of zstd and libdeflate.
Result<void> decompress_chunk(Compression kind, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace feedline::format
