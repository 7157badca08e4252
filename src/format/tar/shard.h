// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>

#include "feedline/error.h"
#include "format/format.h"
#include "format/index/shard_reader.h"
#include "format/tar/field_choice.h"
#include "format/tar/index_store.h"
#include "format/tar/shard_index.h"
#include "storage/storage.h"

namespace feedline::format {

// Locates the tar file of a shard, and decompresses it first if necessary.
Result<ShardFile> locate_tar(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                             cache::Notes* notes = nullptr);

// One tar file of a dataset and its index. The file is opened on the first read. Thread-safe.
class Shard : public ShardReader {
 public:
  using Scans = std::counting_semaphore<>;  // limits concurrent scans: see scans_at_once()
  // The options with which all shards of a dataset are opened.
  struct Opening {
    const IndexStore& indexes;
    Scans& scans;
    bool checks_version = true;  // whether to query each shard's version even if the storage pins reads to a version
  };
  // Loads the stored index or a matching DALI index, or scans the file and stores an index. The version of the shard is
  // not queried (see is_checked()) if the storage supports reads of a specific version, there is a stored index, and
  // `checks_version` is false. Fails with kData if the file is damaged.
  static Result<std::unique_ptr<Shard>> open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                             const Opening& opening);

  const ShardIndex& index() const { return index_; }
  // Deletes the stored index of a changed shard, so that it is rebuilt when the shard is next opened.
  void forget_index(const IndexStore& indexes) const { indexes.forget(*file().storage, file().path); }
  // The path of another program's index from which this one was built, or empty. If the path is not empty, the headers
  // of members must be compared when they are read.
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
