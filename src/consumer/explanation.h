// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/loader.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

namespace feedline::consumer {

// The plan of a loader in words, one line per subject, and what its pipeline has made of it so far. epoch: a whole one.
// asked: what the user wanted, where the plan has something else.
std::string explain(const pipeline::Recipe& recipe, const pipeline::Pipeline& pipeline, const plan::Plan& epoch,
                    const LoaderOptions& asked);

}  // namespace feedline::consumer
