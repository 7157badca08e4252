// SPDX-License-Identifier: Apache-2.0
#pragma once

// Folders written by save_to_disk() of `datasets`: state.json names the files of a dataset, dataset_dict.json the
// folders of several datasets.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

bool is_saved_folder(const std::string& folder, const storage::Storage& storage);

// The full paths of the files, in order. kConfig: several splits, or a dataset with an indices mapping. kData: invalid
// JSON.
Result<std::vector<std::string>> files_of_saved(const std::string& folder, const storage::Storage& storage);

}  // namespace feedline::format
