// SPDX-License-Identifier: Apache-2.0
#include "plan/split.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "plan/permutation.h"

namespace feedline::plan {
namespace {

constexpr std::uint64_t kSplitKey =
    0x73706C69745F7631;  // gives numbers that differ from an epoch's order with this seed

// Assigns samples to parts one by one, always to the part that lacks the most samples, so that each part is close to
// its share at any time. A part never exceeds its share by more than one sample, so all sizes are exact in the end.
class Sharer {
 public:
  explicit Sharer(std::span<const std::uint64_t> counts)
      : counts_(counts),
        lacking_(counts.size()),
        total_(std::accumulate(counts.begin(), counts.end(), std::int64_t{})) {}

  std::size_t next() {
    for (std::size_t i = 0; i < lacking_.size(); ++i) lacking_[i] += static_cast<std::int64_t>(counts_[i]);
    const auto most = std::ranges::max_element(lacking_);
    *most -= total_;
    return static_cast<std::size_t>(most - lacking_.begin());
  }

 private:
  std::span<const std::uint64_t> counts_;
  std::vector<std::int64_t> lacking_;  // deficit of each part, times the number of samples
  std::int64_t total_;
};

// Returns all samples in random order, grouped by class.
std::vector<std::uint64_t> shuffled(std::uint64_t size, std::uint64_t seed, std::span<const std::int64_t> classes) {
  std::vector<std::uint64_t> order(size);
  Permutation(size, base::mix64(seed ^ kSplitKey)).fill(0, order);
  if (!classes.empty()) std::ranges::stable_sort(order, {}, [&](std::uint64_t sample) { return classes[sample]; });
  return order;
}

}  // namespace

std::vector<std::vector<std::uint64_t>> split(std::span<const std::uint64_t> counts, std::uint64_t seed,
                                              std::span<const std::int64_t> classes) {
  const std::uint64_t size = std::accumulate(counts.begin(), counts.end(), std::uint64_t{});
  FEEDLINE_CHECK(!counts.empty() && counts.size() <= std::numeric_limits<std::uint16_t>::max());
  FEEDLINE_CHECK(classes.empty() || classes.size() == size);
  std::vector<std::vector<std::uint64_t>> parts(counts.size());
  if (size == 0) return parts;
  std::vector<std::uint16_t> part_of(size);
  Sharer sharer(counts);
  for (std::uint64_t sample : shuffled(size, seed, classes))
    part_of[sample] = static_cast<std::uint16_t>(sharer.next());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].reserve(counts[i]);
  for (std::uint64_t sample = 0; sample < size; ++sample) parts[part_of[sample]].push_back(sample);
  return parts;
}

}  // namespace feedline::plan
