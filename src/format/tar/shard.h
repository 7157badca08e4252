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

// Where a shard's plain tar bytes are.
Result<ShardFile> locate_tar(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                             cache::Notes* notes = nullptr);

// One tar file of a dataset: its index, and its bytes once somebody reads them. Thread-safe.
class Shard : public ShardReader {
 public:
  using Scans = std::counting_semaphore<>;  // those that may be made: see scans_at_once()
  // How all shards of a dataset are opened.
  struct Opening {
    const IndexStore& indexes;
    Scans& scans;
    bool asks = true;  // for the version of each, whatever its storage
  };
  // Takes the kept index, or one of DALI's that fits, or scans the file and keeps one. Of a storage that holds reads to
  // a version nobody is asked for the shard's where an index is kept and Opening says so: see is_checked(). kData: the
  // first damage.
  static Result<std::unique_ptr<Shard>> open(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                             const Opening& opening);

  const ShardIndex& index() const { return index_; }
  // It is another one by now: the next who opens it makes an index anew.
  void forget_index(const IndexStore& indexes) const { indexes.forget(*file().storage, file().path); }
  // The index of another program that this one was made of; empty: of none. Headers of what is read are to be compared.
  const std::string& listed_by() const { return listed_by_; }
  void choose_fields(const std::vector<FieldChoice>& fields) { finder_.emplace(index_, fields); }
  // Requires: choose_fields() came before.
  const FieldFinder& finder() const { return *finder_; }

 private:
  Shard(ShardFile file, ShardIndex index, bool is_checked, std::string listed_by = {});

  const ShardIndex index_;
  const std::string listed_by_;
  std::optional<FieldFinder> finder_;
};

}  // namespace feedline::format
