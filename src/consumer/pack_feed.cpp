// SPDX-License-Identifier: Apache-2.0
#include "consumer/pack_feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "plan/deal_packs.h"

namespace feedline::consumer {
namespace {

// Threads that share a loader request the segments of a batch just after they have received it.
constexpr std::size_t kRecent = 64;

}  // namespace

PackFeed::PackFeed(pipeline::PackSource source, const LoaderOptions& options, std::uint64_t batch_rows)
    : source_(std::move(source)),
      batch_rows_(batch_rows),
      rank_(options.rank),
      world_size_(options.world_size),
      drop_last_(options.drop_last),
      uneven_(options.uneven) {
  order_config_.size = source_.sequences().size();
  order_config_.shuffle = options.shuffle;
  order_config_.seed = options.seed;
  order_config_.selection = {source_.sequences().mixture(), nullptr};
  if (options.shard_window > 0) {
    order_config_.shard_window = options.shard_window;
    order_config_.shard_ends = std::make_shared<const std::vector<std::uint64_t>>(source_.sequences().block_ends());
  }
}

plan::PackOrder PackFeed::order_of(std::uint64_t epoch) const {
  return plan::PackOrder(order_config_, epoch, source_.options(),
                         [source = source_](std::span<const std::uint64_t> documents,
                                            std::span<std::uint64_t> lengths) { source.lengths(documents, lengths); });
}

std::uint64_t PackFeed::windows() const { return order_of(0).windows(); }

Result<void> PackFeed::start(const PackPosition& position) {
  order_.emplace(order_of(position.epoch));
  window_.reset();
  ahead_.clear();
  given_ = noted_ = 0;
  next_ = position;
  delivered_ = {.position = position, .rows = {}};
  const plan::PackedWindow* const window = position.window < order_->windows() ? window_at(position.window) : nullptr;
  if (position.window <= order_->windows() && position.pack <= (window ? window->packs() : 0)) return {};
  return config_error("load_state_dict: the state is damaged: it has window " + std::to_string(position.window) +
                      " and pack " + std::to_string(position.pack) + ", which an epoch of " +
                      std::to_string(order_->windows()) + " windows does not have");
}

Result<bool> PackFeed::has_batch(const PackPosition& position) {
  FEEDLINE_CHECK_OK(start(position));
  const std::vector<Pack> batch = take(batch_rows_ * world_size_);
  const auto rows = rows_of(batch.size());
  next_ = position;
  return std::ranges::any_of(rows, [](std::uint64_t count) { return count > 0; });
}

const plan::PackedWindow* PackFeed::window_at(std::uint64_t window) {
  if (!window_ || window_number_ != window) {
    window_ = order_->window(window);
    window_number_ = window;
  }
  return window_.get();
}

// Takes the next packs, or as many as the epoch still has.
std::vector<PackFeed::Pack> PackFeed::take(std::uint64_t packs) {
  std::vector<Pack> taken;
  taken.reserve(packs);
  while (taken.size() < packs && next_.window < order_->windows()) {
    const plan::PackedWindow& window = *window_at(next_.window);
    for (; taken.size() < packs && next_.pack < window.packs(); ++next_.pack, ++next_.packs) {
      const auto pieces = window.pack(next_.pack);
      taken.emplace_back(pieces.begin(), pieces.end());
    }
    if (next_.pack == window.packs()) ++next_.window, next_.pack = 0;
  }
  return taken;
}

// Returns the rows of each rank in a global batch with this many packs, as plan::Plan does for other batches.
std::vector<std::uint64_t> PackFeed::rows_of(std::uint64_t packs) const {
  std::vector<std::uint64_t> rows(world_size_, batch_rows_);
  if (packs == batch_rows_ * world_size_) return rows;
  const std::uint64_t least = drop_last_ ? 0 : packs / world_size_, over = drop_last_ ? 0 : packs % world_size_;
  for (std::uint64_t rank = 0; rank < world_size_; ++rank) {
    const bool has_more = uneven_ == Uneven::kPad ? over > 0 : uneven_ == Uneven::kExact && rank < over;
    rows[rank] = least + (has_more ? 1 : 0);
  }
  return rows;
}

// Adds packs from the start of the epoch, so that all ranks have the same number of rows.
void PackFeed::repeat_from_start(std::uint64_t packs, std::vector<Pack>& batch) const {
  for (std::uint64_t w = 0; batch.size() < packs; w = (w + 1) % order_->windows()) {
    const auto window = order_->window(w);
    for (std::uint64_t i = 0; i < window->packs() && batch.size() < packs; ++i) {
      const auto pieces = window->pack(i);
      batch.emplace_back(pieces.begin(), pieces.end());
    }
  }
}

std::optional<std::vector<GivenSample>> PackFeed::next() {
  FEEDLINE_CHECK(order_);
  std::vector<Pack> batch = take(batch_rows_ * world_size_);
  std::vector<std::uint64_t> rows = rows_of(batch.size());
  std::uint64_t all = 0;
  for (const std::uint64_t count : rows) all += count;
  if (all == 0 || rows[rank_] == 0) return {};
  if (all > batch.size()) repeat_from_start(all, batch);
  batch.resize(all);
  std::vector<double> costs;
  costs.reserve(all);
  for (const Pack& pack : batch) costs.push_back(plan::attention_cost(pack));
  const auto rank_of = plan::deal_packs(costs, rows);
  std::vector<Pack> mine;
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (rank_of[i] == rank_) mine.push_back(std::move(batch[i]));
  std::vector<GivenSample> samples(mine.size());
  const std::uint64_t first = source_.add(std::move(mine));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = {first + i, first + i};
  ahead_.push_back({next_, std::move(rows), first});
  ++given_;
  return samples;
}

void PackFeed::note_delivered(std::uint64_t delivered) {
  for (; noted_ < delivered && !ahead_.empty(); ++noted_) {
    delivered_ = std::move(ahead_.front());
    ahead_.pop_front();
    recent_.push_back(delivered_.first);
    if (recent_.size() <= kRecent) continue;
    source_.forget_before(recent_[1]);
    recent_.pop_front();
  }
}

PackCounts PackFeed::count(std::uint64_t epoch, std::optional<std::uint64_t> windows) const {
  const plan::PackOrder order = order_of(epoch);
  return order.count(std::min(windows.value_or(order.windows()), order.windows()));
}

std::uint64_t PackFeed::batches(std::uint64_t epoch) {
  const std::lock_guard lock(counting_);
  if (!counted_ || counted_->first != epoch) counted_ = {epoch, count(epoch).packs};
  const std::uint64_t global_batch = batch_rows_ * world_size_;
  return counted_->second / global_batch + (rows_of(counted_->second % global_batch)[rank_] > 0 ? 1 : 0);
}

}  // namespace feedline::consumer
