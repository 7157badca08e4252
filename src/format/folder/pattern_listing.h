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

// The files in a folder that match the patterns.
struct PatternListing {
  std::vector<std::vector<std::string>> keys;  // sorted, per field
  std::vector<ListedFolder> folders;           // all folders that were listed
};

// Lists the folders of all fields without opening files. Each folder is listed only once. Fails with kConfig if a field
// has no files, and with kStorage if a folder cannot be listed.
Result<PatternListing> list_patterns(const storage::Storage& storage, const std::string& root,
                                     std::span<const FieldPattern> patterns);

// The samples in a listing: the keys that have files.
struct PatternSamples {
  std::vector<std::string> keys;         // sorted
  std::vector<std::vector<bool>> lacks;  // per field, the samples that have no file for it
  std::uint64_t left_out = 0;            // samples left out by Missing::kSkip
};
PatternSamples samples_of(const PatternListing& listing, Missing missing);

}  // namespace feedline::format
