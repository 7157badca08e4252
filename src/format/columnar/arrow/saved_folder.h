// SPDX-License-Identifier: Apache-2.0
#pragma once

// Folders written by save_to_disk() of `datasets`. state.json lists the files of one dataset; dataset_dict.json lists
// the folders of several datasets.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

bool is_saved_folder(const std::string& folder, const storage::Storage& storage);

// Returns the full paths of the files in order. Fails with kConfig if the folder has several splits or the dataset has
// an index mapping (`indices`), and with kData if the JSON is invalid.
Result<std::vector<std::string>> files_of_saved(const std::string& folder, const storage::Storage& storage);

}  // namespace feedline::format
