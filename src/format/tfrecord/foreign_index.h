// SPDX-License-Identifier: Apache-2.0
#pragma once

// Indexes that other programs leave beside a TFRecord file: those of the `tfrecord` package (.tfindex, .index) and of
// DALI's tfrecord2idx (.idx). Both are text, a line "OFFSET LENGTH" for each record, the length with its frame.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/shard_reader.h"

namespace feedline::format {

// Where its records end. Text: why it is not an index of a file of so many bytes.
std::expected<std::vector<std::uint64_t>, std::string> parse_foreign_index(std::string_view text,
                                                                           std::uint64_t shard_bytes);

struct ForeignIndex {
  std::string path;
  std::vector<std::uint64_t> ends;
};
struct ForeignIndexes {
  std::optional<ForeignIndex> found;     // the first one that fits to the shard
  std::vector<std::string> not_fitting;  // a sentence for each that does not
};

// Looks beside the shard, and compares what is there with it: all offsets by its size, and of some records, the first
// and the last among them, the header. storage: what has the shard under its name, and the index.
ForeignIndexes find_foreign_index(const storage::Storage& storage, const ShardFile& shard,
                                  const storage::Reader& reader);

}  // namespace feedline::format
