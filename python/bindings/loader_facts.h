// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a loader tells of itself, as Python has it. Requires: the GIL is held.

#include <nanobind/nanobind.h>

#include <vector>

#include "feedline/loader.h"

namespace feedline::python {

nanobind::dict stats_dict(const LoaderStats& stats);
nanobind::list bad_samples(const std::vector<BadSample>& errors);
nanobind::dict state_dict(const LoaderState& state);
// What state_dict() gave. Raises feedline.ConfigError where it is not such a dict.
LoaderState state_of(const nanobind::dict& state);

}  // namespace feedline::python
