// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many stored bytes of one sample are brought into memory. A file's size and a tar member's header are claims: a
// sparse file of a terabyte must be a bad sample, not the end of the process.
//
// The limit is the loader's memory budget, as one sample that takes more than all batches ahead together is no sample
// of that loader; and at least kLeastSampleBytes, as a budget for small batches says nothing about the photos they
// are made from.

#include <cstdint>
#include <expected>

#include "feedline/error.h"

namespace feedline::memory {

// The pixels of an image where Pillow begins to warn of decompression bombs (MAX_IMAGE_PIXELS, 3 bytes each): whatever
// decodes without a warning fits in encoded, even without compression.
constexpr std::uint64_t kLeastSampleBytes = std::uint64_t{256} << 20;

std::uint64_t sample_limit(std::uint64_t memory_budget);
// Where there is no loader: that of one with the budget that it has by default. Thread-safe.
std::uint64_t usual_sample_limit();

// kData that names both sizes.
std::unexpected<Error> too_large(std::uint64_t bytes, std::uint64_t most);

}  // namespace feedline::memory
