// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shard that begins with a table of the offsets of its samples:
//
//     u32 samples
//     u32 offset[samples + 1]    from the start of the shard: of each sample, and of the end of the last one
//     ...                        data of the format
//     the samples
//
// In some formats, the table and the other data are in a separate file. A shard has at most 4 GiB.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "format/index/shard_parts.h"
#include "format/index/shard_reader.h"
#include "format/row_columns/planned_shard.h"
#include "memory/record.h"

namespace feedline::format {

// The properties of an offset table that are known before it is read.
struct SampleTable {
  std::uint64_t samples = 0;
  std::uint64_t file_bytes = 0;                    // size of the file that begins with the table
  std::uint64_t shard_bytes = 0;                   // size of the file that the offsets refer to
  std::optional<std::uint64_t> first_sample = {};  // offset of the first sample, if known
  bool ends_with_last_sample = true;               // whether the shard ends with its last sample
};

// Returns the offsets of a shard's samples. Fails with kData if the table is damaged or belongs to a different shard.
Result<std::vector<std::uint32_t>> read_sample_table(const storage::Reader& reader, const SampleTable& known);

// Thread-safe. Locates the shard and reads its table on first use. All other properties are known from the index.
class ColumnShard {
 public:
  explicit ColumnShard(PlannedShard plan) : plan_(std::move(plan)) {}

  const PlannedShard& plan() const { return plan_; }

  struct Location {
    std::uint64_t offset = 0, bytes = 0;
  };
  class Located {
   public:
    Located(ShardFile file, std::vector<std::uint32_t> ends, bool is_checked = true)
        : reader(std::move(file), is_checked), ends_(std::move(ends)) {}
    Location location(std::uint64_t sample) const {
      return {ends_[sample], std::uint64_t{ends_[sample + 1]} - ends_[sample]};
    }
    ShardReader reader;

   private:
    std::vector<std::uint32_t> ends_;
  };
  // Returns the shard, and locates it first if necessary. If the shard is stored uncompressed, saves its table in
  // `store` for locate_by_persisted(). Fails with kStorage or kData if the shard is missing or damaged; the next call
  // tries again.
  Result<const Located*> located(const std::shared_ptr<const storage::Storage>& storage, cache::Notes* notes,
                                 const ShardPartsStore* store = nullptr) const;
  // Locates a remote shard by its stored table, without checking that the shard is unchanged. Returns false if there is
  // no stored table or it does not match the index.
  Result<bool> locate_by_persisted(const std::shared_ptr<const storage::Storage>& storage,
                                   const ShardPartsStore& store) const;
  // Returns the shard, or nullptr if it has not been located yet. Does not block.
  const Located* if_located() const { return ready_.load(std::memory_order_acquire); }
  void notice_change() const {
    if (const Located* located = if_located()) located->reader.notice_change();
  }

 private:
  const PlannedFile& planned_table() const {
    return plan_.table ? *plan_.table : static_cast<const PlannedFile&>(plan_);
  }
  // Sets the shard's location, and reads its table from the first `table_bytes` bytes of `reader`.
  Result<const Located*> take(ShardFile file, const storage::Reader& reader, std::uint64_t table_bytes,
                              bool is_checked) const;

  const PlannedShard plan_;
  mutable ForkMutex mutex_;
  mutable std::unique_ptr<Located> located_;  // guarded by mutex_ until it is set
  mutable std::atomic<const Located*> ready_{nullptr};
};

// Returns the bytes of a sample, either as a view of memory that record.pin owns or as a copy in record.storage.
Result<std::span<const std::byte>> read_sample(const std::shared_ptr<const storage::Reader>& reader,
                                               ColumnShard::Location location, memory::Record& record);

}  // namespace feedline::format
