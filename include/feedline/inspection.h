// SPDX-License-Identifier: Apache-2.0
#pragma once

// The report that `feedline inspect` creates for a dataset without decoding its samples.

#include <cstdint>
#include <string>
#include <vector>

namespace feedline {

struct InspectionFinding {
  std::string code;      // stable: "member_without_dot", "unknown_extension", "empty_file", "key_not_adjacent", ...
  std::string severity;  // "error": reading fails; "warning": a reader drops or merges something; "note"
  std::string shard;
  std::string key;
  std::string text;  // one sentence: the problem and its remedy
};

struct InspectionCount {
  std::string name;
  std::uint64_t count = 0;
};

struct Inspection {
  std::string format;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;                             // tar files; 0 for a folder
  std::uint64_t bytes = 0;                              // of the fields to be read
  std::uint64_t smallest_bytes = 0, largest_bytes = 0;  // of one sample's image
  std::vector<std::string> fields;
  std::vector<InspectionCount> extensions;  // number of members or files per extension
  std::vector<InspectionCount> classes;     // samples per class; empty if labels are only inside the samples
  std::vector<InspectionFinding> findings;
};

}  // namespace feedline
