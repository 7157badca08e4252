// SPDX-License-Identifier: Apache-2.0
#pragma once

// LitData's chunks with internal zstd compression, several samples per frame:
//
//     "LDFZ01\0\0", u16 version 1, u16 0
//     u32 samples N, u32 samples per frame, u32 frames
//     u32 offset[N + 1]          into the concatenated samples, uncompressed
//     frames: u32 first sample, u32 samples, u64 offset in the file, u32 bytes, u32 uncompressed bytes
//     the frames
//
// Source: litdata/streaming/framed_zstd.py.

#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

Result<bool> is_framed(const storage::Reader& reader);

// Writes the same samples as an uncompressed chunk: their number, u32 offsets from the start of the chunk, and the
// samples. `samples` is the number of samples in the index. Fails with kData and the position if the chunk is damaged.
Result<void> write_unframed(const storage::Reader& reader, std::uint64_t samples, cache::OutputFile& output);

}  // namespace feedline::format
