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

// The first such file among a few entries of the folder and of each of its subfolders; nullopt if there is none, or if
// an image comes first, since the source is then a folder of images. Hidden files and names that begin with "_" are not
// data: Spark, Hive and Delta Lake write "_SUCCESS", "_metadata" and "_delta_log".
std::optional<std::string> first_data_file(const std::string& folder, const storage::Storage& storage,
                                           const IsDataFile& is_data);

// All such files of the only split (split_names.h), as full paths in sorted order. end: the suffix of patterns in
// messages, ".parquet". kConfig: no file, or several splits; the error lists a source for each. kData: some files of a
// numbered set ("-of-") are missing.
Result<std::vector<std::string>> files_of_folder(const std::string& folder, const storage::Storage& storage,
                                                 const IsDataFile& is_data, std::string_view end);

}  // namespace feedline::format
