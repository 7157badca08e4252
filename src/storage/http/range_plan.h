// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plans the requests for a set of reads: nearby reads of an object share one request, a long read is split into several
// concurrent ones. Pure arithmetic without I/O.
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
  // The limit on unneeded bytes in a request: a fraction of the needed bytes, or this many.
  double waste_share = 0.5;
  std::uint64_t free_waste = 64 << 10;
};
// A gap that transfers faster than a round trip is worth reading, and a request should last about one round trip. Both
// are clamped, since measurements may be wrong.
RangeLimits range_limits(const LinkSpeed& speed);

struct WantedRange {
  std::size_t object = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // not 0
};

// The bytes of a read within a request.
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

// wanted: in the order in which they are needed. Every byte of every read is in one part. Requests are in the order in
// which their first reads are needed.
std::vector<RangeRequest> plan_ranges(std::span<const WantedRange> wanted, const RangeLimits& limits);

}  // namespace feedline::storage
