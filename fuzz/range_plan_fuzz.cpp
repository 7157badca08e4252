// SPDX-License-Identifier: Apache-2.0

// Any reads with any limits, planned as requests: each wanted byte is in exactly one part, which is inside its request.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "fuzz_input.h"
#include "storage/http/range_plan.h"

using namespace feedline;
using storage::RangeLimits;
using storage::RangePart;
using storage::RangeRequest;
using storage::WantedRange;

namespace {

constexpr std::uint64_t kMostRequests = 20;  // per read
constexpr std::size_t kMostReads = 60;

std::vector<WantedRange> reads_in(FuzzInput& input, const RangeLimits& limits) {
  std::vector<WantedRange> wanted;
  while (!input.is_empty() && wanted.size() < kMostReads) {
    WantedRange read;
    const std::uint64_t kind = input.number(1);
    read.object = kind & 3;
    // near the beginning, in the middle, or near the largest numbers
    read.offset = input.number((kind & 4) != 0 ? 2 : 7) + ((kind & 8) != 0 ? std::uint64_t{1} << 62 : 0);
    const std::uint64_t most = limits.longest > (std::uint64_t{1} << 50) / kMostRequests
                                   ? std::uint64_t{1} << 50
                                   : limits.longest * kMostRequests;
    read.bytes = std::min(input.number((kind & 16) != 0 ? 2 : 5), most - 1) + 1;
    wanted.push_back(read);
  }
  return wanted;
}

void check_request(const RangeRequest& request, const RangeLimits& limits) {
  FEEDLINE_CHECK(!request.parts.empty() && request.bytes > 0 && request.bytes <= limits.longest);
  std::uint64_t before = request.offset;
  for (const RangePart& part : request.parts) {
    FEEDLINE_CHECK(part.offset >= before && part.bytes > 0);
    FEEDLINE_CHECK(part.offset - request.offset <= request.bytes);
    FEEDLINE_CHECK(part.bytes <= request.bytes - (part.offset - request.offset));
    before = part.offset;
  }
}

// The consecutive parts of each read cover it.
void check_reads(const std::vector<WantedRange>& wanted, const std::vector<RangeRequest>& requests) {
  std::vector<std::vector<RangePart>> parts(wanted.size());
  for (const RangeRequest& request : requests)
    for (const RangePart& part : request.parts) {
      FEEDLINE_CHECK(part.read < wanted.size() && wanted[part.read].object == request.object);
      parts[part.read].push_back(part);
    }
  for (std::size_t read = 0; read < wanted.size(); ++read) {
    std::ranges::sort(parts[read], {}, &RangePart::offset);
    std::uint64_t next = wanted[read].offset;
    for (const RangePart& part : parts[read]) {
      FEEDLINE_CHECK(part.offset == next);
      next += part.bytes;
    }
    FEEDLINE_CHECK(next == wanted[read].offset + wanted[read].bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  FuzzInput input(data, bytes);
  RangeLimits limits;
  if (input.number(1) % 2 == 0) {
    storage::LinkSpeed speed;
    speed.latency_s = static_cast<double>(input.number(3)) / 1e6;
    speed.bytes_per_s = static_cast<double>(input.number(6));
    limits = storage::range_limits(speed);
    FEEDLINE_CHECK(limits.longest_joined <= limits.longest);
  } else {
    limits.widest_gap = input.number(3);
    limits.longest_joined = input.number(4);
    limits.longest = input.number(4) + 1;
    limits.free_waste = input.number(3);
    limits.waste_share = static_cast<double>(input.number(1)) / 128;
  }
  const auto wanted = reads_in(input, limits);
  const auto requests = storage::plan_ranges(wanted, limits);
  for (const RangeRequest& request : requests) check_request(request, limits);
  check_reads(wanted, requests);
  std::size_t first_before = 0;
  for (const RangeRequest& request : requests) {
    const std::size_t first = std::ranges::min(request.parts, {}, &RangePart::read).read;
    FEEDLINE_CHECK(first >= first_before);
    first_before = first;
  }
  return 0;
}
