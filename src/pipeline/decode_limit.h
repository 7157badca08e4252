// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "feedline/dataset.h"
#include "pipeline/recipe.h"

namespace feedline::pipeline {

// Decodes the drawn regions of the first `images` samples with `threads` threads, the encoded bytes already in memory,
// nothing transformed, nothing batched. Blocks until done.
Result<DecodeLimit> measure_decode(std::shared_ptr<const Recipe> recipe, std::uint64_t images, int threads,
                                   std::uint64_t seed);

}  // namespace feedline::pipeline
