// SPDX-License-Identifier: Apache-2.0
#include "plan/order.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "plan/bucket_order.h"
#include "plan/mixed_order.h"
#include "plan/permutation.h"
#include "plan/sampled_order.h"
#include "plan/shard_order.h"

namespace feedline::plan {
namespace {

class WholeOrder final : public Order {
 public:
  explicit WholeOrder(std::uint64_t size) : size_(size) {}
  WholeOrder(std::uint64_t size, std::uint64_t key) : size_(size), permutation_(std::in_place, size, key) {}

  std::uint64_t size() const override { return size_; }
  OrderedSample at(std::uint64_t position) const override {
    FEEDLINE_CHECK(position < size_);
    const std::uint64_t sample = permutation_ ? (*permutation_)(position) : position;
    return {sample, sample};
  }
  void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const override {
    if (permutation_)
      permutation_->fill(first, samples);
    else
      std::iota(samples.begin(), samples.end(), first);
    std::ranges::copy(samples, draws.begin());
  }
  std::vector<ShardUse> shard_uses(std::span<const std::uint64_t> shard_ends) const override {
    if (permutation_) return Order::shard_uses(shard_ends);
    std::vector<ShardUse> uses;
    for (std::uint64_t first = 0; const std::uint64_t end : shard_ends)
      uses.push_back({std::exchange(first, end), end});
    return uses;
  }

 private:
  std::uint64_t size_;
  std::optional<Permutation> permutation_;
};

// Repeats each of the first positions of another order, with different draws; a sample's first draw is below 2^56.
class RepeatedOrder final : public Order {
 public:
  RepeatedOrder(std::shared_ptr<const Order> order, std::uint64_t times) : order_(std::move(order)), times_(times) {}

  std::uint64_t size() const override { return order_->size(); }
  OrderedSample at(std::uint64_t position) const override {
    FEEDLINE_CHECK(position < size());
    const OrderedSample placed = order_->at(position / times_);
    return {placed.sample, placed.draw | (position % times_) << kDrawBits};
  }
  std::vector<ShardUse> shard_uses(std::span<const std::uint64_t> shard_ends) const override {
    auto uses = order_->shard_uses(shard_ends);
    const std::uint64_t once = size() / times_ + (size() % times_ == 0 ? 0 : 1);  // number of its positions used here
    for (ShardUse& use : uses) {
      const std::uint64_t first = std::min(use.first, once), end = std::min(use.end, once);
      use = {std::min(first * times_, size()), std::min(end * times_, size())};
    }
    return uses;
  }
  bool has_all_samples() const override { return order_->has_all_samples(); }

 private:
  static constexpr int kDrawBits = 56;

  std::shared_ptr<const Order> order_;
  std::uint64_t times_;
};

}  // namespace

void Order::place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const OrderedSample placed = at(first + i);
    samples[i] = placed.sample;
    draws[i] = placed.draw;
  }
}

std::shared_ptr<const Order> make_order(const OrderConfig& config, std::uint64_t epoch) {
  FEEDLINE_CHECK(config.size > 0);
  const auto [mixture, sampling] = config.current ? config.current->get() : config.selection;
  if (config.repeat != 1) {
    FEEDLINE_CHECK(config.repeat > 0 && config.repeat <= kMostRepeats && !mixture && !config.buckets);
    OrderConfig once = config;
    once.repeat = 1;
    return std::make_shared<RepeatedOrder>(make_order(once, epoch), config.repeat);
  }
  if (mixture) return std::make_shared<MixedOrder>(mixture, config.shuffle, config.seed, epoch);
  if (sampling) return make_sampled_order(sampling, config.seed, epoch);
  // separate keys: random operations combine seed and epoch differently (base::Random)
  const std::uint64_t key = base::mix64(base::mix64(config.seed) + epoch);
  if (config.buckets) return std::make_shared<BucketOrder>(config.buckets, config.shuffle, key);
  if (!config.shuffle) return std::make_shared<WholeOrder>(config.size);
  if (config.shard_window > 0 && config.shard_ends && config.shard_ends->size() > 1)
    return std::make_shared<ShardOrder>(config.shard_ends, config.shard_window, key);
  return std::make_shared<WholeOrder>(config.size, key);
}

}  // namespace feedline::plan
