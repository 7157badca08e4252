// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hive partitions: columns whose values are in the names of folders ("label=cat/part-0.parquet") and not in the files.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline::format {

struct Partition {
  std::string name;
  bool are_integers = false;                       // whether all values are integers; otherwise they are text
  std::vector<std::optional<std::string>> values;  // by file; nullopt for __HIVE_DEFAULT_PARTITION__

  std::vector<std::string> distinct() const;  // sorted
};

// Returns the folder in which the names of subfolders are partitions: the source if it is a folder, the folder before
// the first wildcard if it is a single pattern, otherwise the common folder of all files.
std::string partition_root(const std::string& source, bool is_folder, const std::vector<std::string>& files);

// Returns the partitions in the order of the folders, percent-decoded. Fails with kConfig if a file's partitions differ
// from those of the first file.
Result<std::vector<Partition>> partitions_of(const std::string& root, const std::vector<std::string>& files);

}  // namespace feedline::format
