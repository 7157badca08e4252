// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "feedline/loader.h"
#include "pipeline/sample/recipe.h"
#include "plan/buckets.h"

namespace feedline::pipeline {

// Returns the requested buckets for the recipe's samples, or nullptr if no buckets are requested. Reads the length of
// every sample. kConfig: an option conflicts with the samples or another option.
Result<std::shared_ptr<const plan::Buckets>> make_buckets(const Recipe& recipe, const LoaderOptions& options);

}  // namespace feedline::pipeline
