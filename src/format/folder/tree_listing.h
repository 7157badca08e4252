// SPDX-License-Identifier: Apache-2.0
#pragma once

// The contents of a folder in a backend whose folders are only slashes in names.

#include <string>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Lists everything below `root`, its folders in parallel: a million names take a thousand requests, and each request of
// a listing needs the result of the one before. kStorage: there is nothing below the root, or it cannot be listed.
// Requires: flat names.
Result<storage::Tree> list_tree(const storage::Storage& storage, const std::string& root);

}  // namespace feedline::format
