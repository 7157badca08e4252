// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shard with a table of where its samples lie, with which it begins:
//
//     u32 samples
//     u32 offset[samples + 1]    from the shard's begin: of each sample, and of the last one's end
//     ...                        what the format puts there
//     the samples
//
// or which is all but the samples, in a file of its own. A shard has 4 GiB at most.

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
#include "format/columns/planned_shard.h"
#include "format/shard_parts.h"
#include "format/shard_reader.h"
#include "memory/record.h"

namespace feedline::format {

// What is known of a table before it is read.
struct SampleTable {
  std::uint64_t samples = 0;
  std::uint64_t file_bytes = 0;                    // of the file that begins with it
  std::uint64_t shard_bytes = 0;                   // of what the offsets lead into
  std::optional<std::uint64_t> first_sample = {};  // where it begins; none: anywhere behind the table, in its file
  bool ends_with_last_sample = true;               // the shard
};

// Where the samples of a shard lie. kData: the table is damaged, or is not of such a shard.
Result<std::vector<std::uint32_t>> read_sample_table(const storage::Reader& reader, const SampleTable& known);

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
  const PlannedFile& planned_table() const {
    return plan_.table ? *plan_.table : static_cast<const PlannedFile&>(plan_);
  }
  // The shard, and its table, in the first `table_bytes` that `reader` has.
  Result<const Located*> take(ShardFile file, const storage::Reader& reader, std::uint64_t table_bytes,
                              bool is_checked) const;

  const PlannedShard plan_;
  mutable ForkMutex mutex_;
  mutable std::unique_ptr<Located> located_;  // guarded by mutex_ until it is there
  mutable std::atomic<const Located*> ready_{nullptr};
};

// The bytes of a sample: mapped, then kept by record.pin, or read into record.storage.
Result<std::span<const std::byte>> read_sample(const std::shared_ptr<const storage::Reader>& reader,
                                               ColumnShard::Place place, memory::Record& record);

}  // namespace feedline::format
