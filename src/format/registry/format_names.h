// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace feedline::format {

// Returns whether format= accepts the name: that of a format of the engine or of a plugin.
bool is_format(std::string_view name);
// Returns whether the engine reads files with this extension (lower case, without a dot), as datasets or as values.
bool is_extension_of_engine(std::string_view extension);

}  // namespace feedline::format
