// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which files of a folder are a dataset, however deep they are in it.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

using IsDataFile = std::function<bool(std::string_view name)>;

// The folder, or its folder "data" if only that holds such a file, or the first such file of a look at a few entries of
// each folder below it; nullopt: none is found, or images are, which make a folder of images of it. Hidden files, and
// those and folders whose names begin with "_", are not data: Spark, Hive and Delta Lake write "_SUCCESS", "_metadata"
// and "_delta_log".
std::optional<std::string> first_data_file(const std::string& folder, const storage::Storage& storage,
                                           const IsDataFile& is_data);

// All of them, of one split (split_names.h): whole paths, sorted as text. end: what patterns in messages end in,
// ".parquet". kConfig: none, or several splits; the error has a source for each. kData: fewer files than "-of-" says.
Result<std::vector<std::string>> files_of_folder(const std::string& folder, const storage::Storage& storage,
                                                 const IsDataFile& is_data, std::string_view end);

}  // namespace feedline::format
