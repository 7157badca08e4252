// SPDX-License-Identifier: Apache-2.0
#pragma once

// Patterns of file names: "*" is any text, "?" one character, "[a-c]" and "[!a-c]" one of a set, none of them a slash;
// "**" as a whole part of a path is any number of folders. Names that begin with a dot match only a part that does, as
// in a shell.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Does the name have a wildcard? Of a remote one, "?" begins a query, and only what precedes it counts.
bool has_wildcard(std::string_view name, bool is_remote);

// Does a whole path match? Both are split at slashes.
bool matches_glob(std::string_view path, std::string_view pattern);

// The folder of a pattern's parts without a wildcard; "." if there are none.
std::string fixed_folder_of(std::string_view pattern);

// The files that match, sorted by name; folders are among them if `with_folders`. Hidden files, and indexes that
// Feedline writes, are left out. kConfig: none matches; the error lists the folder's contents.
Result<std::vector<std::string>> expand_glob(const std::string& pattern, const storage::Storage& storage,
                                             bool with_folders = false);

// "'a', 'b', 'c' and 4 more"
std::string shown_names(const std::vector<std::string>& names);

}  // namespace feedline::format
