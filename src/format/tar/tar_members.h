// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the byte ranges of one sample's members in a shard, and reads them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "format/short_list.h"
#include "format/tar/shard_index.h"
#include "memory/record.h"
#include "storage/reader.h"

namespace feedline::format {

// A range of a shard that contains all wanted members of a sample.
struct Range {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end = 0;
  std::uint64_t wanted = 0;

  void add(const ShardIndex::Member& member) {
    begin = std::min(begin, member.offset);
    end = std::max(end, member.offset + member.bytes);
    wanted += member.bytes;
  }
  // Returns whether one request should read all members. The members of a sample are adjacent, but there may be large
  // unwanted members between them.
  bool is_dense() const {
    constexpr std::uint64_t kWorthAnotherRequest = 64 << 10;
    return end - begin <= wanted + kWorthAnotherRequest;
  }
};

Range range_of(std::span<const ShardIndex::Member> members);

// Sets `payloads` to the contents of the members, which record.pin or record.storage owns. Fails with kData if the
// members exceed record.most_bytes.
Result<void> fetch_members(const std::shared_ptr<const storage::Reader>& reader,
                           std::span<const ShardIndex::Member> members, memory::Record& record,
                           std::span<std::span<const std::byte>> payloads);

}  // namespace feedline::format
