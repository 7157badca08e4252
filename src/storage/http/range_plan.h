// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which requests bring the bytes that are wanted: reads of one object that are near each other in one, a long read in
// several that run side by side. Arithmetic alone; nobody is asked.
//
//   reads        [ A ] [ B ]      [ C ]                    [         D         ]
//   requests     [  A and B, and what is between  ] [ C ]  [  D  ][  D  ][  D  ]

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/http/host_pace.h"

namespace feedline::storage {

struct RangeLimits {
  std::uint64_t widest_gap = 0;      // between two reads of one request
  std::uint64_t longest_joined = 0;  // a request for several reads
  std::uint64_t longest = 0;         // any request
  // What a request brings that nobody wants: a share of what is wanted, or this much.
  double waste_share = 0.5;
  std::uint64_t free_waste = 64 << 10;
};
// A gap that takes less time than another round trip is worth reading, and a request that takes a round trip of time
// to come is long enough. Within bounds: what is measured may be wrong.
RangeLimits range_limits(const LinkSpeed& speed);

struct WantedRange {
  std::size_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // not 0
};

// Bytes of a read that lie in a request.
struct RangePart {
  std::size_t read = 0;      // which of those wanted
  std::uint64_t offset = 0;  // in the object
  std::uint64_t bytes = 0;
};

struct RangeRequest {
  std::size_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<RangePart> parts;  // by their offset; they overlap where reads do
};

// wanted: in the order in which they are needed. Every byte of every read is in one part. Requests come in the order
// in which the first of their reads is needed.
std::vector<RangeRequest> plan_ranges(std::span<const WantedRange> wanted, const RangeLimits& limits);

}  // namespace feedline::storage
