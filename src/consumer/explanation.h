// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/loader.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

namespace feedline::consumer {

class PackFeed;

// See Loader::warning().
std::string costly_reads(const pipeline::Recipe& recipe, const pipeline::Pipeline& pipeline, const PackFeed* packs);

// Describes a loader's plan, one line per subject, and the pipeline's state. epoch: the plan for a complete epoch.
// asked: the options that the user passed, if the plan differs from them.
// packs: the feed of packed sequences, or nullptr.
std::string explain(const pipeline::Recipe& recipe, const pipeline::Pipeline& pipeline, const plan::Plan& epoch,
                    const LoaderOptions& asked, const PackFeed* packs);

}  // namespace feedline::consumer
