// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shard as described by the dataset's index. The shard itself may be missing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/notes.h"
#include "format/index/shard_reader.h"
#include "format/shards/finding.h"
#include "storage/storage.h"

namespace feedline::format {

struct PlannedFile {
  std::string name;                               // the stored object, for messages
  std::optional<std::uint64_t> plain_bytes = {};  // uncompressed size, if given in the index
  // Locates the uncompressed contents. Called on the first use of a sample, or for remote storage when the dataset is
  // opened.
  std::function<Result<ShardFile>(std::shared_ptr<const storage::Storage> storage, cache::Notes* notes)> locate;
  // The path of the file if it is stored uncompressed, so that data cached for this path can be used. Otherwise not
  // set.
  std::optional<std::string> stored_path = {};
};

// An offset table in a separate file.
struct PlannedTable : PlannedFile {
  std::uint64_t first_sample = 0;  // its offset in the shard
};

struct PlannedShard : PlannedFile {
  std::uint64_t samples = 0;
  std::size_t schema = 0;                  // index of the samples' schema in the dataset's list
  bool ends_with_last_sample = true;       // if false, other data may follow
  std::optional<PlannedTable> table = {};  // if not set, the shard begins with its table
  // Compares the stored file with the checksums in the index. nullptr if the index has no checksums.
  std::function<Result<void>(const storage::Storage& storage, Findings& findings)> check = nullptr;
};

}  // namespace feedline::format
