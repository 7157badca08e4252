// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline::plan {

// kConfig: a weight is negative or not finite, or no weight is above 0. where: the caller's name. of: the kind of
// object that has a weight; in errors, its number follows.
Result<void> check_weights(const std::string& where, const std::string& of, const std::vector<double>& weights);

}  // namespace feedline::plan
