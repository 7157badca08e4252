// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace feedline::format {

// Returns whether format= accepts the name: that of a format of the engine or of a plugin.
bool is_format(std::string_view name);

}  // namespace feedline::format
