// SPDX-License-Identifier: Apache-2.0
#pragma once

// Folders that `datasets` writes by save_to_disk(): state.json names the files of a dataset, dataset_dict.json the
// folders of several.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

bool is_saved_folder(const std::string& folder, const storage::Storage& storage);

// The files in their order, whole paths. kConfig: of several splits; of samples that were chosen from others; kData:
// one of the JSON files is none.
Result<std::vector<std::string>> files_of_saved(const std::string& folder, const storage::Storage& storage);

}  // namespace feedline::format
