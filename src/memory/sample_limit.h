// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the stored bytes of one sample that are loaded into memory. A file's size and a tar member's header are only
// claims: a sparse file of a terabyte must be reported as a bad sample and must not crash the process.
//
// The limit is the loader's memory budget, because a sample that is larger than all prefetched batches together cannot
// be one of the loader's samples. The limit is at least kLeastSampleBytes, because the budget for small batches does
// not limit the size of the photos from which they are made.

#include <cstdint>
#include <expected>

#include "feedline/error.h"

namespace feedline::memory {

// The size of the pixels of an image above which Pillow warns of decompression bombs (MAX_IMAGE_PIXELS, 3 bytes each).
// An encoded image that decodes without a warning fits, even if it is uncompressed.
constexpr std::uint64_t kLeastSampleBytes = std::uint64_t{256} << 20;

std::uint64_t sample_limit(std::uint64_t memory_budget);
// Returns the limit to use without a loader, which is that of a loader with the default budget. Thread-safe.
std::uint64_t usual_sample_limit();

// Returns a kData error that states both sizes.
std::unexpected<Error> too_large(std::uint64_t bytes, std::uint64_t most);

}  // namespace feedline::memory
