// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plans the requests for a set of reads: nearby reads of an object share a request, and a long read is divided into
// several concurrent ones. Performs no I/O.
//
//   reads        [ A ] [ B ]      [ C ]                    [         D         ]
//   requests     [  A and B, and the gap between  ] [ C ]  [  D  ][  D  ][  D  ]

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/http/host_pace.h"

namespace feedline::storage {

struct RangeLimits {
  std::uint64_t widest_gap = 0;      // gap between two reads of one request
  std::uint64_t longest_joined = 0;  // size of a request for several reads
  std::uint64_t longest = 0;         // size of any request
  // The limit on unneeded bytes in a request: a fraction of the needed bytes, or a fixed number of bytes.
  double waste_share = 0.5;
  std::uint64_t free_waste = 64 << 10;
};
// Reading a gap is worthwhile if it takes less time than a round trip, and a request should take about one round trip.
// Both limits are clamped, because measurements may be wrong.
RangeLimits range_limits(const LinkSpeed& speed);

struct WantedRange {
  std::size_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // not 0
};

// The part of a read that a request contains.
struct RangePart {
  std::size_t read = 0;      // index of the read
  std::uint64_t offset = 0;  // in the object
  std::uint64_t bytes = 0;
};

struct RangeRequest {
  std::size_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<RangePart> parts;  // by offset; they overlap if reads do
};

// wanted: the reads, in the order in which they are needed. Every byte of every read is in exactly one part. Requests
// are in the order in which their first reads are needed.
std::vector<RangeRequest> plan_ranges(std::span<const WantedRange> wanted, const RangeLimits& limits);

}  // namespace feedline::storage
