// SPDX-License-Identifier: Apache-2.0
#pragma once

// The record formats that plugins have registered, copied and stored until the process ends: pointers to them stay
// valid. Thread-safe; a mutex guards the list, also in a child of fork().

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "feedline/plugin/plugin.h"

namespace feedline::format {

// Checks the name, fields and functions. kConfig: one is missing or invalid, or another plugin has the name or one of
// the extensions. The caller compares them with those of the engine's formats. others: formats of the same plugin,
// which were checked but not added yet.
Result<void> check_plugin(const feedline_format_v1& format, std::span<const feedline_format_v1> others);
// Requires: check_plugin() succeeded for the same format, and no format was added since.
void add_plugin(const feedline_format_v1& format);

// Returns the format with this name, or nullptr if there is none.
const feedline_format_v1* plugin_format(std::string_view name);
// Returns the format to which the extension of a file's name belongs, or nullptr.
const feedline_format_v1* plugin_format_of_file(std::string_view path);
std::vector<std::string_view> plugin_format_names();

}  // namespace feedline::format
