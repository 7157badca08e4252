// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks members of the structs that plugins register (feedline/plugin/plugin.h). `what` names the struct in errors,
// as in "the codec 'qoi'". Pure functions, callable from any thread; pointers are used only during a call.

#include <cstddef>
#include <string>

#include "feedline/error.h"

namespace feedline::base {

// kConfig unless the name consists of ASCII letters, digits, "_", "-" and "."; with is_lower, of lower-case letters.
// member: "name", for the error.
Result<void> check_plugin_name(const std::string& what, const std::string& member, const char* name,
                               bool is_lower = false);
// kConfig if the list is missing, or absurdly long.
Result<void> check_plugin_list(const std::string& what, const std::string& members, const void* list,
                               std::size_t count);
// kConfig if the list is missing, or an extension is not a name in lower case without a dot.
Result<void> check_plugin_extensions(const std::string& what, const char* const* extensions, std::size_t count);

}  // namespace feedline::base
