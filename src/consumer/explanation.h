// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/loader.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

namespace feedline::consumer {

// Describes a loader's plan, one line per subject, and the pipeline's state. epoch: a complete epoch. asked: the user's
// options, if the plan differs from these options.
std::string explain(const pipeline::Recipe& recipe, const pipeline::Pipeline& pipeline, const plan::Plan& epoch,
                    const LoaderOptions& asked);

}  // namespace feedline::consumer
