// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a loader's statistics and state to Python. Requires: the GIL is held.

#include <nanobind/nanobind.h>

#include <vector>

#include "feedline/loader.h"

namespace feedline::python {

nanobind::dict stats_dict(const LoaderStats& stats);
nanobind::list bad_samples(const std::vector<BadSample>& errors);
nanobind::dict pack_counts_dict(const PackCounts& counts);
nanobind::dict state_dict(const LoaderState& state);
// Converts the result of state_dict(). Raises feedline.ConfigError if it is not a valid state.
LoaderState state_of(const nanobind::dict& state);

}  // namespace feedline::python
