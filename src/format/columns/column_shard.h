// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shard that begins with a table of where its samples lie:
//
//     u32 samples
//     u32 offset[samples + 1]    from the shard's begin: of each sample, and of the last one's end
//     ...                        what the format puts there
//     the samples
//
// so that a shard has 4 GiB at most.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/columns/planned_shard.h"
#include "format/shard_parts.h"
#include "format/shard_reader.h"
#include "memory/record.h"

namespace feedline::format {

// Where the samples of a shard lie. kData: the table is damaged, or is not of a shard of so many samples and bytes.
Result<std::vector<std::uint32_t>> read_sample_table(const storage::Reader& reader, std::uint64_t samples,
                                                     std::uint64_t shard_bytes, bool ends_with_last_sample);

// Thread-safe. Located, and its table read, when it is first asked for: an index says all else of it.
class ColumnShard {
 public:
  explicit ColumnShard(PlannedShard plan) : plan_(std::move(plan)) {}

  const PlannedShard& plan() const { return plan_; }

  struct Place {
    std::uint64_t offset = 0, bytes = 0;
  };
  class Located {
   public:
    Located(ShardFile file, std::vector<std::uint32_t> ends, bool is_checked = true)
        : reader(std::move(file), is_checked), ends_(std::move(ends)) {}
    Place place(std::uint64_t sample) const {
      return {ends_[sample], std::uint64_t{ends_[sample + 1]} - ends_[sample]};
    }
    ShardReader reader;

   private:
    std::vector<std::uint32_t> ends_;
  };
  // kData, kStorage: there is none, or it is damaged; asked for again it is looked at anew. store: where its table is
  // kept for locate_by_kept(), of a shard that is stored as it is.
  Result<const Located*> located(const std::shared_ptr<const storage::Storage>& storage, cache::Notes* notes,
                                 const ShardPartsStore* store = nullptr) const;
  // Behind a network, without asking whether it is still the shard that its table was kept of. false: none was kept,
  // or it does not fit the index.
  Result<bool> locate_by_kept(const std::shared_ptr<const storage::Storage>& storage,
                              const ShardPartsStore& store) const;
  // Without waiting for anything; nullptr: not yet.
  const Located* if_located() const { return ready_.load(std::memory_order_acquire); }
  void notice_change() const {
    if (const Located* located = if_located()) located->reader.notice_change();
  }

 private:
  Result<const Located*> take(ShardFile file, const storage::Reader& reader, bool is_checked) const;

  const PlannedShard plan_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Located> located_;  // guarded by mutex_ until it is there
  mutable std::atomic<const Located*> ready_{nullptr};
};

// The bytes of a sample: mapped, then kept by record.pin, or read into record.storage.
Result<std::span<const std::byte>> read_sample(const std::shared_ptr<const storage::Reader>& reader,
                                               ColumnShard::Place place, memory::Record& record);

}  // namespace feedline::format
