// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which files a source is made of, where they are tables: by their names, by a pattern, and by what lies in a folder.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Does a file's name end so, before "?" in a URL, in any case?
bool has_end(const std::string& path, std::string_view end);
// The first name of a list, its braces expanded.
std::string first_of_list(const std::string& source, const storage::Storage& storage);
// Is there a '*' in the source's last name, and no file that is called so?
bool is_pattern(const std::string& source, const storage::Storage& storage);

// Every file of a list; '*' in a last name stands for any text, and the files that fit come sorted. what: "Parquet
// file". kConfig: an empty name, none that fits.
Result<std::vector<std::string>> files_of_list(const std::string& source, const storage::Storage& storage,
                                               std::string_view what);

// The files of a folder that end so, as the `datasets` library lays them out: "train-00000-of-00004.parquet", or
// "train.parquet". Sorted, whole paths. kConfig: of several splits, some of which would have to be chosen; kData: fewer
// files than "-of-" says.
Result<std::vector<std::string>> files_of_folder(const std::string& folder, const storage::Storage& storage,
                                                 std::string_view end);

}  // namespace feedline::format
