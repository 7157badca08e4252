// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a dataset's index says of a shard: nothing is known yet of whether it is there.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/notes.h"
#include "format/finding.h"
#include "format/shard_reader.h"
#include "storage/storage.h"

namespace feedline::format {

struct PlannedFile {
  std::string name;                               // the object that holds it, for messages
  std::optional<std::uint64_t> plain_bytes = {};  // where the index says how many it has, without compression
  // Where its plain bytes are: looked for when a sample of it is first read; behind a network, when the dataset is
  // opened.
  std::function<Result<ShardFile>(std::shared_ptr<const storage::Storage> storage, cache::Notes* notes)> locate;
  // Where its plain bytes are if they are stored as they are, which what was kept of that object says; none: they have
  // to be looked for.
  std::optional<std::string> stored_path = {};
};

// A table of offsets in a file of its own.
struct PlannedTable : PlannedFile {
  std::uint64_t first_sample = 0;  // where it begins in the shard
};

struct PlannedShard : PlannedFile {
  std::uint64_t samples = 0;
  std::size_t schema = 0;                  // of the dataset's: that of its samples
  bool ends_with_last_sample = true;       // else other data may follow
  std::optional<PlannedTable> table = {};  // none: the shard begins with it
  // Compares what is stored with the checksums that the index has of it, all of it; none: it has none.
  std::function<Result<void>(const storage::Storage& storage, Findings& findings)> check = nullptr;
};

}  // namespace feedline::format
