// SPDX-License-Identifier: Apache-2.0
#pragma once

// Patterns of file names. "*" matches any text, "?" any character, and "[a-c]" and "[!a-c]" a character inside or
// outside a set. These wildcards do not match a slash. "**" as a whole component of a path matches any number of
// folders. As in a shell, only components that begin with a dot match names that begin with a dot.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Checks whether a name has a wildcard. In a remote name, "?" begins a query, and only the text before it is checked.
bool has_wildcard(std::string_view name, bool is_remote);

// Checks whether a whole path matches, component by component.
bool matches_glob(std::string_view path, std::string_view pattern);

// Returns the folder of the leading components without wildcards, or "." if there are none.
std::string fixed_folder_of(std::string_view pattern);

// Returns the files that match, sorted by name, and also folders if `with_folders` is true. Skips hidden files and
// Feedline's indexes. Fails with kConfig if nothing matches; the error lists the folder's contents.
Result<std::vector<std::string>> expand_glob(const std::string& pattern, const storage::Storage& storage,
                                             bool with_folders = false);

// "'a', 'b', 'c' and 4 more"
std::string shown_names(const std::vector<std::string>& names);

}  // namespace feedline::format
