// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chunks of Blosc 1. Little-endian.
//
//      0 1  version 2                 8 4  bytes of a block
//      1 1  version of the codec     12 4  bytes of the chunk, with this header
//      2 1  flags                    16 4  per block: its offset
//      3 1  bytes of an element           per block: streams, each with its size (4 bytes) before it. A stream that is as
//      4 4  decompressed bytes            large as its output is not compressed
//
//      flags: 1 shuffled, 2 stored without compression, 4 bits are shuffled, 16 a block is one stream, 5-7 codec
//
// Source: README_CHUNK_FORMAT.rst of c-blosc 1.21.

#include <cstddef>
#include <span>

#include "feedline/error.h"
#include "memory/record.h"

namespace feedline::format {

// Decompresses a chunk into `out`. Supports lz4, zlib, zstd and snappy. kData: the chunk is damaged, uses another
// codec, or has another size than `out`.
Result<void> decompress_blosc(std::span<const std::byte> chunk, std::span<std::byte> out, memory::ByteBuffer& room);

// Inverts the shuffling of bytes: byte b of element i is in[b * elements + i]. Bytes after the last whole element are
// copied.
void unshuffle(std::span<const std::byte> in, std::size_t element, std::byte* out);

}  // namespace feedline::format
