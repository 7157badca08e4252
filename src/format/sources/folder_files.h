// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the files in a folder and its subfolders that form a dataset.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

using IsDataFile = std::function<bool(std::string_view name)>;

// Searches some entries of the folder and its subfolders, and returns the first data file. Returns nullopt if there is
// none, or if it finds an image first, since the source is then a folder of images. Ignores hidden files and names that
// begin with "_", such as "_SUCCESS", "_metadata" and "_delta_log", which Spark, Hive and Delta Lake write.
std::optional<std::string> first_data_file(const std::string& folder, const storage::Storage& storage,
                                           const IsDataFile& is_data);

// Returns the full paths of all data files in sorted order, if the folder has only one split (split_names.h). `end` is
// the suffix of patterns in messages, such as ".parquet". Fails with kConfig if there are no files, or if there are
// several splits, in which case the error lists a source for each split, or if `feedline pack` has not finished writing
// the folder. Fails with kData if files of a numbered set ("-of-") are missing.
Result<std::vector<std::string>> files_of_folder(const std::string& folder, const storage::Storage& storage,
                                                 const IsDataFile& is_data, std::string_view end);

}  // namespace feedline::format
