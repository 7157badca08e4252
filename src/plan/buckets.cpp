// SPDX-License-Identifier: Apache-2.0
#include "plan/buckets.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace feedline::plan {

Buckets::Buckets(std::vector<Bucket> buckets, std::span<const std::uint64_t> lengths) : buckets_(std::move(buckets)) {
  FEEDLINE_CHECK(lengths.size() <= std::numeric_limits<std::uint32_t>::max());
  const auto bucket_of = [this](std::uint64_t length) {
    const auto found = std::ranges::lower_bound(buckets_, length, {}, &Bucket::bound);
    FEEDLINE_CHECK(found != buckets_.end());
    return static_cast<std::size_t>(found - buckets_.begin());
  };
  ends_.resize(buckets_.size());
  for (const std::uint64_t length : lengths) ++ends_[bucket_of(length)];
  std::vector<std::uint64_t> next;  // index of each bucket's next member
  std::uint64_t members = 0;
  for (std::uint64_t& end : ends_) {
    next.push_back(members);
    end = members += end;
  }
  samples_.resize(lengths.size());
  for (std::size_t sample = 0; sample < lengths.size(); ++sample)
    samples_[next[bucket_of(lengths[sample])]++] = static_cast<std::uint32_t>(sample);
}

std::span<const std::uint32_t> Buckets::members(std::uint64_t bucket) const {
  const std::uint64_t begin = bucket == 0 ? 0 : ends_[bucket - 1];
  return std::span(samples_).subspan(begin, ends_[bucket] - begin);
}

std::vector<std::uint64_t> quantile_bounds(std::vector<std::uint64_t> lengths, std::uint64_t count) {
  FEEDLINE_CHECK(count > 0 && !lengths.empty());
  constexpr std::uint64_t kUnit = 8;
  std::vector<std::uint64_t> bounds;
  auto begin = lengths.begin();
  count = std::min<std::uint64_t>(count, lengths.size());
  for (std::uint64_t bucket = 1; bucket <= count; ++bucket) {
    // the last sample of this share; all before `begin` are shorter
    const std::uint64_t share = lengths.size() / count * bucket + lengths.size() % count * bucket / count;
    const auto last = lengths.begin() + static_cast<std::ptrdiff_t>(share - 1);
    std::nth_element(begin, last, lengths.end());
    begin = last + 1;
    const std::uint64_t bound = (*last + kUnit - 1) / kUnit * kUnit;
    if (bounds.empty() || bound > bounds.back()) bounds.push_back(bound);
  }
  return bounds;
}

}  // namespace feedline::plan
