// SPDX-License-Identifier: Apache-2.0
#pragma once

// What lies below a folder of a storage whose folders are slashes in names.

#include <string>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// All of it, the folders in `root` side by side: a listing of a million names is a thousand requests, each of which has
// to wait for the one before it. kStorage: there is nothing, or it cannot be listed. Requires: flat names.
Result<storage::Tree> list_tree(const storage::Storage& storage, const std::string& root);

}  // namespace feedline::format
