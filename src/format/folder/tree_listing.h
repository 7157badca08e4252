// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists folders in storage that has no real folders, only names with slashes.

#include <string>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Lists everything below `root`. Lists folders in parallel, because a million names need a thousand requests, and each
// request for a listing depends on the result of the previous request. Fails with kStorage if the root is empty or
// cannot be listed. Requires: flat names.
Result<storage::Tree> list_tree(const storage::Storage& storage, const std::string& root);

}  // namespace feedline::format
