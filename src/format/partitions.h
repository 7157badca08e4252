// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hive partitions: values of a column in the names of folders, "label=cat/part-0.parquet", which the files themselves
// do not have.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline::format {

struct Partition {
  std::string name;
  bool are_integers = false;                       // all values; else they are text
  std::vector<std::optional<std::string>> values;  // of each file; nullopt: __HIVE_DEFAULT_PARTITION__

  std::vector<std::string> distinct() const;  // sorted
};

// The folder that partitions of these files are below: a source that is a folder, the part of a single pattern without
// wildcards, or else the folder that all files are in.
std::string partition_root(const std::string& source, bool is_folder, const std::vector<std::string>& files);

// In the order of the folders. Names and values are percent-decoded. kConfig: files with other partitions than the
// first.
Result<std::vector<Partition>> partitions_of(const std::string& root, const std::vector<std::string>& files);

// Would a text column of this name be a label? Its values are class names.
bool is_label_name(std::string_view name);

}  // namespace feedline::format
