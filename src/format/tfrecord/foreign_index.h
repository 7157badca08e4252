// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads indexes that other programs store next to a TFRecord file: those from the `tfrecord` package (.tfindex, .index)
// and from DALI's tfrecord2idx (.idx). Both kinds of indexes are text files with a line "OFFSET LENGTH" for each
// record. The length includes the frame.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/index/shard_reader.h"

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

// Finds indexes next to the shard and compares them with the shard: all offsets with the shard's size, and some
// lengths, including the first and the last, with record headers. `storage` contains the index and the shard under its
// name.
ForeignIndexes find_foreign_index(const storage::Storage& storage, const ShardFile& shard,
                                  const storage::Reader& reader);

}  // namespace feedline::format
