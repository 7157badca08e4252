// SPDX-License-Identifier: Apache-2.0
#pragma once

// LitData's chunks with zstd inside the file, some samples in a frame:
//
//     "LDFZ01\0\0", u16 version 1, u16 0
//     u32 samples N, u32 samples of a frame, u32 frames
//     u32 offset[N + 1]          in the samples behind each other, without compression
//     frames: u32 first sample, u32 samples, u64 offset in the file, u32 bytes, u32 bytes without compression
//     the frames
//
// Source: litdata/streaming/framed_zstd.py.

#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

Result<bool> is_framed(const storage::Reader& reader);

// Writes the same samples as a chunk without compression: their number, u32 offsets from its begin, the samples.
// samples: that the index says there are. kData: it is damaged, with the place.
Result<void> write_unframed(const storage::Reader& reader, std::uint64_t samples, cache::OutputFile& output);

}  // namespace feedline::format
