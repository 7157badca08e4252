// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "feedline/dataset.h"
#include "pipeline/sample/recipe.h"

namespace feedline::pipeline {

// Measures decoding of the drawn regions of the first `images` samples with `threads` threads. The encoded bytes are
// loaded into memory first; nothing is transformed or batched. Blocks until done.
Result<DecodeLimit> measure_decode(std::shared_ptr<const Recipe> recipe, std::uint64_t images, int threads,
                                   std::uint64_t seed);

}  // namespace feedline::pipeline
