// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/folder/field_pattern.h"
#include "format/folder/listed_folders.h"
#include "format/format.h"
#include "storage/storage.h"

namespace feedline::format {

// The files that patterns name below a folder.
struct PatternListing {
  std::vector<std::vector<std::string>> keys;  // of each field, sorted
  std::vector<ListedFolder> folders;           // all that were listed
};

// Lists the folders of all fields, those of several fields once; reads no file. kConfig: there is no file for a field.
// kStorage: a folder cannot be listed.
Result<PatternListing> list_patterns(const storage::Storage& storage, const std::string& root,
                                     std::span<const FieldPattern> patterns);

// The samples that they make: the keys that files are there for.
struct PatternSamples {
  std::vector<std::string> keys;         // sorted
  std::vector<std::vector<bool>> lacks;  // per field: which samples have no file for it
  std::uint64_t left_out = 0;            // with Missing::kSkip
};
PatternSamples samples_of(const PatternListing& listing, Missing missing);

}  // namespace feedline::format
