// SPDX-License-Identifier: Apache-2.0
#pragma once

// The image operations that plugins have registered, copied and stored until the process ends; ops/apply.cpp runs them.
// Thread-safe; a mutex guards the list, also in a child of fork().

#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "feedline/plugin/plugin.h"

namespace feedline::transform {

// Checks the name, arguments and functions. kConfig: one is missing or invalid, or the name exists.
Result<void> check_plugin(const feedline_operation_v1& operation);
// Requires: check_plugin() succeeded for the same operation, and no operation was added since.
void add_plugin(const feedline_operation_v1& operation);

// Returns the operation with this name, or nullptr if there is none.
const feedline_operation_v1* plugin_operation(std::string_view name);
std::vector<std::string_view> plugin_operation_names();

}  // namespace feedline::transform
