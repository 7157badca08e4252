// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline::plan {

// kConfig: a weight is negative or not finite, or none is above 0. where: the caller's name; of: what has a weight,
// followed by its number in the error.
Result<void> check_weights(const std::string& where, const std::string& of, const std::vector<double>& weights);

}  // namespace feedline::plan
