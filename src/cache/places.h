// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/error.h"

namespace feedline::cache {

// Creates the folder and its parents if they do not exist.
Result<void> make_folder(const std::string& path);

// Returns the folder for this user's reproducible files: $XDG_CACHE_HOME/feedline or ~/.cache/feedline. Does not create
// the folder. kStorage: neither variable is set.
Result<std::string> cache_folder();

// Returns whether the folder's permissions allow this process to remove the file.
bool may_remove(const std::string& path);

// last_part() returns the last component of a name in any storage, and folder_of() the text before it ("" if there is
// only one component).
std::string last_part(const std::string& name);
std::string folder_of(const std::string& path);

}  // namespace feedline::cache
