// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>

#include "feedline/error.h"
#include "format/format.h"
#include "format/index_store.h"
#include "format/shard_reader.h"
#include "format/tar/field_choice.h"
#include "format/tar/shard_index.h"
#include "storage/storage.h"

namespace feedline::format {

// Finds a shard's uncompressed tar.
Result<ShardFile> locate_tar(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                             cache::Notes* notes = nullptr);

// One tar file of a dataset: its index, and its bytes, which are opened on the first read. Thread-safe.
class Shard : public ShardReader {
 public:
  using Scans = std::counting_semaphore<>;  // limits concurrent scans: see scans_at_once()
  // The options with which all shards of a dataset are opened.
  struct Opening {
    const IndexStore& indexes;
    Scans& scans;
    bool asks = true;  // whether to query each shard's version even if the storage pins reads to a version
  };
  // Loads the stored index, or a matching one from DALI, or scans the file and stores an index. If the storage pins
  // reads to a version, an index is stored and `asks` is false, the shard's version is not queried: see is_checked().
  // kData: the first damage.
  static Result<std::unique_ptr<Shard>> open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                             const Opening& opening);

  const ShardIndex& index() const { return index_; }
  // Deletes the stored index of a changed shard, so that the next open rebuilds it.
  void forget_index(const IndexStore& indexes) const { indexes.forget(*file().storage, file().path); }
  // The path of another program's index from which this one was built, or empty. The headers of members must then be
  // compared on reading.
  const std::string& listed_by() const { return listed_by_; }
  void choose_fields(const std::vector<FieldChoice>& fields) { finder_.emplace(index_, fields); }
  // Requires: choose_fields() was called.
  const FieldFinder& finder() const { return *finder_; }

 private:
  Shard(ShardFile file, ShardIndex index, bool is_checked, std::string listed_by = {});

  const ShardIndex index_;
  const std::string listed_by_;
  std::optional<FieldFinder> finder_;
};

}  // namespace feedline::format
