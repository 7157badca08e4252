// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the stored bytes of one sample loaded into memory. A file's size and a tar member's header are only claims: a
// sparse file of a terabyte must be a bad sample, not crash the process.
//
// The limit is the loader's memory budget, because a sample larger than all batches ahead together cannot belong to
// that loader; and at least kLeastSampleBytes, because a budget for small batches does not limit the photos they are
// made from.

#include <cstdint>
#include <expected>

#include "feedline/error.h"

namespace feedline::memory {

// The size of an image's pixels at which Pillow begins to warn of decompression bombs (MAX_IMAGE_PIXELS, 3 bytes each):
// images that decode without a warning fit in encoded form, even uncompressed.
constexpr std::uint64_t kLeastSampleBytes = std::uint64_t{256} << 20;

std::uint64_t sample_limit(std::uint64_t memory_budget);
// The limit without a loader: that of a loader with the default budget. Thread-safe.
std::uint64_t usual_sample_limit();

// Returns kData with both sizes.
std::unexpected<Error> too_large(std::uint64_t bytes, std::uint64_t most);

}  // namespace feedline::memory
