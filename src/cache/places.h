// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/error.h"

namespace feedline::cache {

// Makes the folder and its parents where they do not exist.
Result<void> make_folder(const std::string& path);

// Where this user's reproducible files go: $XDG_CACHE_HOME/feedline or ~/.cache/feedline. Not created here.
// kStorage: neither variable is set.
Result<std::string> cache_folder();

// May this process remove the file, by its folder's permissions?
bool may_remove(const std::string& path);

// The last part of a name, whichever storage it is of, and what stands before it; "" where it has but one part.
std::string last_part(const std::string& name);
std::string folder_of(const std::string& path);

}  // namespace feedline::cache
