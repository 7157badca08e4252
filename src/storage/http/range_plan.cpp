// SPDX-License-Identifier: Apache-2.0
#include "storage/http/range_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace feedline::storage {
namespace {

constexpr double kLeastGap = 16 << 10, kWidestGap = 1 << 20;
constexpr double kLeastJoined = 512 << 10, kLongest = 8 << 20;

// Merges consecutive reads into requests.
class Joiner {
 public:
  Joiner(const RangeLimits& limits, std::vector<RangeRequest>& requests) : limits_(limits), requests_(requests) {}

  // Requires: reads are added in ascending order of their offsets, which are within the object.
  void add(std::size_t read, const WantedRange& wanted) {
    if (wanted.bytes > limits_.longest) return split(read, wanted);
    if (!fits(wanted)) open(wanted);
    RangeRequest& request = requests_.back();
    const std::uint64_t end = std::max(request.offset + request.bytes, wanted.offset + wanted.bytes);
    wanted_bytes_ += end - std::max(request.offset + request.bytes, wanted.offset);
    request.bytes = end - request.offset;
    request.parts.push_back({read, wanted.offset, wanted.bytes});
  }

 private:
  bool fits(const WantedRange& wanted) const {
    if (!is_open_ || requests_.back().object != wanted.object) return false;
    const RangeRequest& request = requests_.back();
    const std::uint64_t end = request.offset + request.bytes;
    const std::uint64_t new_end = std::max(end, wanted.offset + wanted.bytes);
    if (new_end == end) return true;  // all of the read is covered
    if (wanted.offset > end && wanted.offset - end > limits_.widest_gap) return false;
    if (new_end - request.offset > std::min(limits_.longest_joined, limits_.longest)) return false;
    const std::uint64_t all_wanted = wanted_bytes_ + new_end - std::max(end, wanted.offset);
    const auto share = static_cast<std::uint64_t>(limits_.waste_share * static_cast<double>(all_wanted));
    return new_end - request.offset - all_wanted <= std::max(limits_.free_waste, share);
  }

  void open(const WantedRange& wanted) {
    requests_.push_back({wanted.object, wanted.offset, 0, {}});
    wanted_bytes_ = 0;
    is_open_ = true;
  }

  void split(std::size_t read, const WantedRange& wanted) {
    const std::uint64_t count = (wanted.bytes - 1) / limits_.longest + 1;
    const std::uint64_t each = (wanted.bytes - 1) / count + 1;
    for (std::uint64_t at = 0; at < wanted.bytes; at += each) {
      const std::uint64_t offset = wanted.offset + at, bytes = std::min(each, wanted.bytes - at);
      requests_.push_back({wanted.object, offset, bytes, {{read, offset, bytes}}});
    }
    is_open_ = false;
  }

  const RangeLimits& limits_;
  std::vector<RangeRequest>& requests_;
  bool is_open_ = false;  // whether reads may join the last request
  std::uint64_t wanted_bytes_ = 0;
};

}  // namespace

RangeLimits range_limits(const LinkSpeed& speed) {
  const double of_a_round_trip = speed.latency_s * speed.bytes_per_s;
  const auto bounded = [&](double least, double most) {
    return static_cast<std::uint64_t>(std::clamp(of_a_round_trip, least, most));
  };
  RangeLimits limits;
  limits.widest_gap = bounded(kLeastGap, kWidestGap);
  limits.longest_joined = bounded(kLeastJoined, kLongest);
  limits.longest = static_cast<std::uint64_t>(kLongest);
  return limits;
}

std::vector<RangeRequest> plan_ranges(std::span<const WantedRange> wanted, const RangeLimits& limits) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t read) { return std::tuple(wanted[read].object, wanted[read].offset, read); });
  std::vector<RangeRequest> requests;
  Joiner joiner(limits, requests);
  for (const std::size_t read : order) joiner.add(read, wanted[read]);
  std::ranges::stable_sort(requests, {}, [](const RangeRequest& request) {
    return std::ranges::min(request.parts, {}, &RangePart::read).read;
  });
  return requests;
}

}  // namespace feedline::storage
