// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "feedline/loader.h"
#include "feedline/packing.h"
#include "pipeline/sample/pack_source.h"
#include "plan/order.h"
#include "plan/pack_order.h"

namespace feedline::consumer {

// A position between two packs of an epoch.
struct PackPosition {
  std::uint64_t epoch = 0;
  std::uint64_t window = 0, pack = 0;
  std::uint64_t packs = 0;  // before it in the epoch
  friend bool operator==(const PackPosition&, const PackPosition&) = default;
};

// Divides the stream of packs into global batches, distributes them to ranks, and adds this rank's rows to the source.
// Global batches continue across windows and depend on batch_rows * world_size only. Not thread-safe.
class PackFeed {
 public:
  // Requires: checked options.
  PackFeed(pipeline::PackSource source, const LoaderOptions& options, std::uint64_t batch_rows);

  const pipeline::PackSource& source() const { return source_; }
  // Starts at this position, whose number of packs is unknown for states of other versions. Returns an error if it is
  // outside the epoch.
  Result<void> start(const PackPosition& position);
  // Returns whether any rank gets a batch of the epoch from `position` on.
  Result<bool> has_batch(const PackPosition& position);
  // Adds this rank's rows of the next global batch, and returns their samples; nullopt at the end of the epoch.
  std::optional<std::vector<GivenSample>> next();
  // The number of batches that next() has returned since start().
  std::uint64_t given() const { return given_; }
  // The first `delivered` of them have been delivered. Requires: `delivered` does not decrease.
  void note_delivered(std::uint64_t delivered);
  // The position after the delivered batches.
  const PackPosition& position() const { return delivered_.position; }
  // The rows of each rank in the last delivered batch; empty before it.
  const std::vector<std::uint64_t>& rows_per_rank() const { return delivered_.rows; }

  // Returns the effect of packing on a whole epoch, or on its first windows. Takes about 60 ns for each document.
  PackCounts count(std::uint64_t epoch, std::optional<std::uint64_t> windows = {}) const;
  // Returns the batches of this rank in an epoch. Thread-safe, like count() and windows().
  std::uint64_t batches(std::uint64_t epoch);
  std::uint64_t windows() const;

 private:
  struct Given {
    PackPosition position;  // after it
    std::vector<std::uint64_t> rows;
    std::uint64_t first = 0;  // its first sample
  };
  using Pack = std::vector<PackPiece>;

  plan::PackOrder order_of(std::uint64_t epoch) const;
  const plan::PackedWindow* window_at(std::uint64_t window);
  std::vector<Pack> take(std::uint64_t packs);
  std::vector<std::uint64_t> rows_of(std::uint64_t packs) const;
  void repeat_from_start(std::uint64_t packs, std::vector<Pack>& batch) const;

  const pipeline::PackSource source_;
  plan::OrderConfig order_config_;
  const std::uint64_t batch_rows_, rank_, world_size_;
  const bool drop_last_;
  const Uneven uneven_;

  std::optional<plan::PackOrder> order_;  // of the epoch
  std::shared_ptr<const plan::PackedWindow> window_;
  std::uint64_t window_number_ = 0;  // of `window_`
  PackPosition next_;                // of the next pack to give
  std::uint64_t given_ = 0, noted_ = 0;
  std::deque<Given> ahead_;           // given, but not delivered
  Given delivered_;                   // the last one
  std::deque<std::uint64_t> recent_;  // first samples of the last delivered batches, whose segments are still known

  std::mutex counting_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> counted_;  // an epoch and its packs; guarded by counting_
};

}  // namespace feedline::consumer
