// SPDX-License-Identifier: Apache-2.0
#pragma once

// Patterns of file names: "*" is any text, "?" any character, "[a-c]" and "[!a-c]" a character of a set, all without
// slashes; "**" as a whole part of a path is any number of folders. As in a shell, names that begin with a dot only
// match parts that begin with a dot.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Does the name have a wildcard? In a remote name, "?" begins a query, and only the text before it counts.
bool has_wildcard(std::string_view name, bool is_remote);

// Does a whole path match? Both are split at slashes.
bool matches_glob(std::string_view path, std::string_view pattern);

// The folder given by the leading parts without a wildcard; "." if there are none.
std::string fixed_folder_of(std::string_view pattern);

// The files that match, sorted by name; also folders if `with_folders`. Hidden files and Feedline's indexes are left
// out. kConfig: nothing matches; the error lists the folder's contents.
Result<std::vector<std::string>> expand_glob(const std::string& pattern, const storage::Storage& storage,
                                             bool with_folders = false);

// "'a', 'b', 'c' and 4 more"
std::string shown_names(const std::vector<std::string>& names);

}  // namespace feedline::format
