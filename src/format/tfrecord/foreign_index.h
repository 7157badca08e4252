// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads indexes of other programs next to a TFRecord file: those of the `tfrecord` package (.tfindex, .index) and of
// DALI's tfrecord2idx (.idx). Both are text with a line "OFFSET LENGTH" per record; the length includes the frame.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/shard_reader.h"

namespace feedline::format {

// Returns the ends of the records, or the reason why the text is not an index of a file of this size.
std::expected<std::vector<std::uint64_t>, std::string> parse_foreign_index(std::string_view text,
                                                                           std::uint64_t shard_bytes);

struct ForeignIndex {
  std::string path;
  std::vector<std::uint64_t> ends;
};
struct ForeignIndexes {
  std::optional<ForeignIndex> found;     // the first index that matches the shard
  std::vector<std::string> not_fitting;  // one sentence per index that does not match
};

// Finds indexes next to the shard and compares them with it: all offsets with its size, and the headers of some
// records, including the first and the last. storage: contains the shard under its name, and the index.
ForeignIndexes find_foreign_index(const storage::Storage& storage, const ShardFile& shard,
                                  const storage::Reader& reader);

}  // namespace feedline::format
