// SPDX-License-Identifier: Apache-2.0
#include "plan/sampled_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "plan/permutation.h"
#include "plan/weights.h"

namespace feedline::plan {
namespace {

// The random streams of operations are numbered from 0; this number is far outside their range.
constexpr std::uint32_t kWeightStream = 0x77656967u;
// Separates the keys of undersampled epochs from those of shuffled ones.
constexpr std::uint64_t kClassStream = 0x636C6173736573u;

// Initial values of fingerprints, one for each kind of sampling.
constexpr std::uint64_t kByWeight = 1, kUndersampled = 2, kInOrder = 3;

template <typename Values, typename ToBits>
std::uint64_t fingerprint_of(std::uint64_t kind, const Values& values, const ToBits& to_bits) {
  std::uint64_t hash = base::mix64(kind + values.size());
  for (const auto value : values) hash = base::mix64(hash + to_bits(value));
  return std::max<std::uint64_t>(hash, 1);
}

class OrderSampling : public Sampling, public std::enable_shared_from_this<OrderSampling> {
 public:
  explicit OrderSampling(std::uint64_t fingerprint) : fingerprint_(fingerprint) {}
  std::uint64_t fingerprint() const final { return fingerprint_; }
  virtual std::shared_ptr<const Order> order(std::uint64_t seed, std::uint64_t epoch) const = 0;

 protected:
  template <typename Derived>
  std::shared_ptr<const Derived> self() const {
    return std::static_pointer_cast<const Derived>(shared_from_this());
  }

 private:
  std::uint64_t fingerprint_;
};

// The order of an epoch with sampling. `Of`, the kind of sampling, computes the sample at each position.
template <typename Of>
class SampledOrder final : public Order {
 public:
  SampledOrder(std::shared_ptr<const Of> of, typename Of::Key key) : of_(std::move(of)), key_(std::move(key)) {}
  std::uint64_t size() const override { return of_->positions(); }
  OrderedSample at(std::uint64_t position) const override {
    FEEDLINE_CHECK(position < size());
    return of_->at(key_, position);
  }
  bool has_all_samples() const override { return false; }

 private:
  std::shared_ptr<const Of> of_;
  typename Of::Key key_;
};

// ---- by weight ----

class ByWeight final : public OrderSampling {
 public:
  struct Key {
    std::uint64_t seed, epoch;
  };
  ByWeight(std::vector<double> sums, std::uint64_t last, std::uint64_t fingerprint)
      : OrderSampling(fingerprint), sums_(std::move(sums)), last_(last) {}

  std::uint64_t samples() const override { return sums_.size(); }
  std::uint64_t positions() const override { return sums_.size(); }
  std::string explain() const override { return "drawn by weight, with replacement"; }
  std::shared_ptr<const Order> order(std::uint64_t seed, std::uint64_t epoch) const override {
    return std::make_shared<SampledOrder<ByWeight>>(self<ByWeight>(), Key{seed, epoch});
  }
  OrderedSample at(const Key& key, std::uint64_t position) const {
    const double drawn = base::Random({key.seed, key.epoch, position}, kWeightStream).uniform() * sums_.back();
    // a product rounded up to the sum has no sample after it
    const auto found = static_cast<std::uint64_t>(std::ranges::upper_bound(sums_, drawn) - sums_.begin());
    return {std::min(found, last_), position};
  }

 private:
  std::vector<double> sums_;  // of the weights up to each sample
  std::uint64_t last_;        // the last sample with a weight above 0
};

// ---- undersample ----

class Undersampled final : public OrderSampling {
 public:
  struct Key {
    Permutation positions;
    std::vector<Permutation> classes;
  };
  Undersampled(std::vector<std::uint64_t> members, std::vector<std::uint64_t> ends, std::uint64_t fingerprint)
      : OrderSampling(fingerprint), members_(std::move(members)), ends_(std::move(ends)), smallest_(ends_.front()) {
    for (std::size_t i = 1; i < ends_.size(); ++i) smallest_ = std::min(smallest_, ends_[i] - ends_[i - 1]);
  }

  std::uint64_t samples() const override { return members_.size(); }
  std::uint64_t positions() const override { return smallest_ * ends_.size(); }
  std::string explain() const override {
    return std::to_string(smallest_) + " samples from each of " + std::to_string(ends_.size()) +
           " classes, keyed permutation";
  }
  std::shared_ptr<const Order> order(std::uint64_t seed, std::uint64_t epoch) const override {
    const std::uint64_t key = base::mix64(base::mix64(base::mix64(seed) ^ kClassStream) + epoch);
    Key permutations{Permutation(positions(), key), {}};
    for (std::size_t i = 0; i < ends_.size(); ++i)
      permutations.classes.emplace_back(ends_[i] - begin_of(i), base::mix64(key + i + 1));
    return std::make_shared<SampledOrder<Undersampled>>(self<Undersampled>(), std::move(permutations));
  }
  OrderedSample at(const Key& key, std::uint64_t position) const {
    const std::uint64_t permuted = key.positions(position);
    const auto number = static_cast<std::size_t>(permuted % ends_.size());
    const std::uint64_t sample = members_[begin_of(number) + key.classes[number](permuted / ends_.size())];
    return {sample, sample};
  }

 private:
  std::uint64_t begin_of(std::size_t number) const { return number == 0 ? 0 : ends_[number - 1]; }

  std::vector<std::uint64_t> members_;  // samples, grouped by class
  std::vector<std::uint64_t> ends_;     // of each class in members_
  std::uint64_t smallest_;              // samples of the smallest class
};

// ---- in order ----

class InOrder final : public OrderSampling {
 public:
  struct Key {};
  InOrder(std::vector<std::uint64_t> indices, std::vector<std::uint64_t> draws, std::uint64_t samples,
          std::uint64_t fingerprint)
      : OrderSampling(fingerprint), indices_(std::move(indices)), draws_(std::move(draws)), samples_(samples) {}

  std::uint64_t samples() const override { return samples_; }
  std::uint64_t positions() const override { return indices_.size(); }
  std::string explain() const override { return "in the sampler's order"; }
  std::shared_ptr<const Order> order(std::uint64_t /*seed*/, std::uint64_t /*epoch*/) const override {
    return std::make_shared<SampledOrder<InOrder>>(self<InOrder>(), Key{});
  }
  OrderedSample at(const Key& /*key*/, std::uint64_t position) const {
    const std::uint64_t sample = indices_[position];
    return {sample, draws_.empty() ? sample : draws_[position]};
  }

 private:
  std::vector<std::uint64_t> indices_;
  std::vector<std::uint64_t> draws_;  // empty if no index is repeated
  std::uint64_t samples_;
};

// Returns a different draw for each occurrence of a sample; the first draw is the sample number. Returns an empty
// vector if no sample occurs twice.
std::vector<std::uint64_t> draws_of(const std::vector<std::uint64_t>& indices, std::uint64_t samples) {
  std::vector<std::uint32_t> times(samples);
  std::vector<std::uint64_t> draws;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::uint64_t earlier = times[indices[i]]++;
    if (earlier > 0 && draws.empty()) {
      draws.reserve(indices.size());
      draws.assign(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (earlier > 0 || !draws.empty()) draws.push_back(indices[i] + samples * earlier);
  }
  return draws;
}

}  // namespace

std::shared_ptr<const Order> make_sampled_order(const std::shared_ptr<const Sampling>& sampling, std::uint64_t seed,
                                                std::uint64_t epoch) {
  return static_cast<const OrderSampling&>(*sampling).order(seed, epoch);  // all are made in this file
}

}  // namespace feedline::plan

namespace feedline {

Result<std::shared_ptr<const Sampling>> Sampling::by_weight(const std::vector<double>& weights) {
  FEEDLINE_CHECK_OK(plan::check_weights("loader", "sample", weights));
  std::vector<double> sums;
  sums.reserve(weights.size());
  double sum = 0;
  std::uint64_t last = 0;
  for (const double weight : weights) {
    if (weight > 0) last = sums.size();
    sums.push_back(sum += weight);
  }
  if (!std::isfinite(sum))
    return config_error("loader: the sum of the weights is not finite; divide all by the largest");
  const auto to_bits = [](double weight) { return std::bit_cast<std::uint64_t>(weight); };
  return std::make_shared<plan::ByWeight>(std::move(sums), last,
                                          plan::fingerprint_of(plan::kByWeight, weights, to_bits));
}

Result<std::shared_ptr<const Sampling>> Sampling::undersample(const std::vector<std::int64_t>& classes) {
  if (classes.empty()) return config_error("loader: undersampling needs a class for each sample, and none was given");
  std::map<std::int64_t, std::vector<std::uint64_t>> by_class;
  for (std::size_t i = 0; i < classes.size(); ++i) by_class[classes[i]].push_back(i);
  std::vector<std::uint64_t> members, ends;
  members.reserve(classes.size());
  for (const auto& [number, samples] : by_class) {
    members.insert(members.end(), samples.begin(), samples.end());
    ends.push_back(members.size());
  }
  const auto to_bits = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
  return std::make_shared<plan::Undersampled>(std::move(members), std::move(ends),
                                              plan::fingerprint_of(plan::kUndersampled, classes, to_bits));
}

Result<std::shared_ptr<const Sampling>> Sampling::in_order(std::vector<std::uint64_t> indices, std::uint64_t samples,
                                                           std::optional<std::uint64_t> fingerprint) {
  if (indices.empty()) return config_error("loader: the sampler returned no indices; an epoch needs at least one");
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] >= samples)
      return config_error("loader: the sampler's index at position " + std::to_string(i) + " is " +
                          std::to_string(indices[i]) + ", but the dataset has " + std::to_string(samples) +
                          " samples, with the indices 0 to " + std::to_string(samples - 1));
  if (!fingerprint)
    fingerprint = plan::fingerprint_of(plan::kInOrder, indices, [](std::uint64_t index) { return index; });
  auto draws = plan::draws_of(indices, samples);
  return std::make_shared<plan::InOrder>(std::move(indices), std::move(draws), samples, *fingerprint);
}

}  // namespace feedline
