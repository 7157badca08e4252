// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline::format {

// Expands braces as bash does: "{000..146}" (zeros kept, "{a..e}" and a step "..2" too), "{a,b}", several groups and
// groups inside groups; leftmost varies slowest. Text without braces is itself. kConfig: braces that do not match,
// that hold neither a range nor a list (bash would take them literally), or that make an absurd number of names.
Result<std::vector<std::string>> expand_braces(const std::string& text);

// "a::b" is a, then b.
std::vector<std::string> split_list(const std::string& text);

}  // namespace feedline::format
