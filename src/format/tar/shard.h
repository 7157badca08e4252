// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/index_store.h"
#include "format/shard_reader.h"
#include "format/tar/field_choice.h"
#include "format/tar/shard_index.h"
#include "storage/storage.h"

namespace feedline::format {

// Where a shard's plain tar bytes are.
Result<ShardFile> locate_tar(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                             cache::Notes* notes = nullptr);

// One tar file of a dataset: its index, and its bytes once somebody reads them. Thread-safe.
class Shard : public ShardReader {
 public:
  // Scans that are made at a time: each holds what a storage has worth reading at once, 8 MiB over a network.
  using Scans = std::counting_semaphore<>;
  static constexpr std::ptrdiff_t kMostScans = 16;
  // Takes the kept index, or scans the file and keeps one. kData: the first of the damages found.
  static Result<std::unique_ptr<Shard>> open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                             const IndexStore& indexes, Scans& scans);

  const ShardIndex& index() const { return index_; }
  // What its classes are called (class_names.h): known of a remote shard, whose beginning came with its opening.
  Result<std::vector<std::string>> class_names() const;
  void choose_fields(const std::vector<FieldChoice>& fields) { finder_.emplace(index_, fields); }
  // Requires: choose_fields() came before.
  const FieldFinder& finder() const { return *finder_; }

 private:
  Shard(ShardFile file, ShardIndex index);

  const ShardIndex index_;
  std::optional<std::vector<std::string>> class_names_;
  std::optional<FieldFinder> finder_;
};

}  // namespace feedline::format
