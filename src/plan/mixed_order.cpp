// SPDX-License-Identifier: Apache-2.0
#include "plan/mixed_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "plan/permutation.h"

namespace feedline::plan {
namespace {

// A block spans many batches, so that the number of samples from each part varies between batches as if drawn at
// random. A block is short compared with an epoch, so these numbers do not vary more than that.
constexpr std::uint64_t kBlock = 4096;

// Separate keys for the passes over parts and for the blocks.
constexpr std::uint64_t kPassStream = 0x6D69787475726573u;
constexpr std::uint64_t kBlockStream = 0x626C6F636B735F31u;

std::vector<std::uint64_t> shares_of(const std::vector<Part>& parts) {
  std::vector<std::uint64_t> shares;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    double rest = 0;  // summed from the end, so that it equals the last weight exactly when only that is left
    for (std::size_t j = parts.size(); j-- > i + 1;) rest += parts[j].weight;
    const double all = parts[i].weight + rest;
    const double share = all > 0 ? parts[i].weight / all : 0;
    // a share rounded to 1 would leave nothing for later parts
    shares.push_back(static_cast<std::uint64_t>(std::ldexp(std::min(share, std::nextafter(1.0, 0.0)), 64)));
  }
  return shares;
}

// round(positions * share)
std::uint64_t counted(std::uint64_t positions, std::uint64_t share) {
  const auto product = static_cast<unsigned __int128>(positions) * share + (static_cast<unsigned __int128>(1) << 63);
  return static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t count_with(const std::vector<std::uint64_t>& shares, std::size_t part, std::uint64_t positions) {
  for (std::size_t i = 0; i < part; ++i) positions -= counted(positions, shares[i]);
  return part < shares.size() ? counted(positions, shares[part]) : positions;
}

// Returns the smallest number of `positions` for which `enough` returns true; `enough` must be monotonic.
template <typename Enough>
std::uint64_t first_that(const Enough& enough) {
  std::uint64_t low = 0, high = kMostPositions + 1;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (enough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

std::uint64_t count_of_part(const std::vector<Part>& parts, std::size_t part, std::uint64_t positions) {
  return count_with(shares_of(parts), part, positions);
}

std::uint64_t positions_until_first(const std::vector<Part>& parts) {
  const auto shares = shares_of(parts);
  std::uint64_t least = kMostPositions + 1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].weight == 0) continue;
    least = std::min(least, first_that([&](std::uint64_t positions) {
                              return count_with(shares, i, positions) > parts[i].size;
                            }) - 1);
  }
  return least;
}

std::uint64_t positions_until_last(const std::vector<Part>& parts) {
  const auto shares = shares_of(parts);
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].weight == 0) continue;
    most = std::max(
        most, first_that([&](std::uint64_t positions) { return count_with(shares, i, positions) >= parts[i].size; }));
  }
  return most;
}

std::vector<std::uint64_t> used_before(const Mixture& mixture, std::uint64_t epoch) {
  const auto shares = shares_of(mixture.parts);
  const bool is_later = epoch >= mixture.since && !mixture.used.empty();
  std::vector<std::uint64_t> used;
  for (std::size_t i = 0; i < mixture.parts.size(); ++i) {
    const std::uint64_t each = count_with(shares, i, mixture.samples);
    used.push_back(is_later ? mixture.used[i] + (epoch - mixture.since) * each : epoch * each);
  }
  return used;
}

MixedOrder::MixedOrder(std::shared_ptr<const Mixture> mixture, bool shuffle, std::uint64_t seed, std::uint64_t epoch)
    : mixture_(std::move(mixture)),
      shuffle_(shuffle),
      seed_key_(base::mix64(base::mix64(seed) ^ kPassStream)),
      block_key_(base::mix64(base::mix64(base::mix64(seed) ^ kBlockStream) + epoch)),
      shares_(shares_of(mixture_->parts)) {
  FEEDLINE_CHECK(!mixture_->parts.empty() && mixture_->samples > 0);
  for (std::size_t i = 0; i < mixture_->parts.size(); ++i) {
    const Part& part = mixture_->parts[i];
    FEEDLINE_CHECK(part.size > 0 && part.weight >= 0);
    offsets_.push_back(total_);
    total_ += part.size;
  }
  begins_ = used_before(*mixture_, epoch);
}

OrderedSample MixedOrder::at(std::uint64_t position) const {
  FEEDLINE_CHECK(position < size());
  if (shuffle_) {
    const std::uint64_t block = position / kBlock;
    const std::uint64_t begin = block * kBlock;
    const Permutation permutation(std::min(kBlock, size() - begin), base::mix64(block_key_ + block));
    position = begin + permutation(position - begin);
  }
  std::size_t part = 0;
  for (; part < shares_.size(); ++part) {
    const std::uint64_t before = counted(position, shares_[part]);
    if (counted(position + 1, shares_[part]) > before) {
      position = before;
      break;
    }
    position -= before;
  }
  const std::uint64_t samples = mixture_->parts[part].size;
  const std::uint64_t drawn = begins_[part] + position;  // position over all epochs
  const std::uint64_t pass = drawn / samples;
  std::uint64_t sample = drawn % samples;
  if (shuffle_) sample = Permutation(samples, base::mix64(base::mix64(seed_key_ + part) + pass))(sample);
  sample += offsets_[part];
  // a sample repeated in an epoch gets different random numbers
  return {sample, sample + total_ * (pass - begins_[part] / samples)};
}

}  // namespace feedline::plan
