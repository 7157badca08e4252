// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "feedline/dataset.h"
#include "pipeline/sample/recipe.h"

namespace feedline::pipeline {

// Measures how fast `threads` threads decode the drawn regions of the first `images` samples. The encoded bytes are
// loaded into memory first; images are neither transformed nor batched. Blocks until done.
Result<DecodeLimit> measure_decode(std::shared_ptr<const Recipe> recipe, std::uint64_t images, int threads,
                                   std::uint64_t seed);

}  // namespace feedline::pipeline
