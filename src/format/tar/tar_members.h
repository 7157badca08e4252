// SPDX-License-Identifier: Apache-2.0
#pragma once

// The members of one sample in a shard: which bytes they take, and how these are read.

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

// One range of a shard that holds all members of a sample that are wanted.
struct Range {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end = 0;
  std::uint64_t wanted = 0;

  void add(const ShardIndex::Member& member) {
    begin = std::min(begin, member.offset);
    end = std::max(end, member.offset + member.bytes);
    wanted += member.bytes;
  }
  // Members of a sample lie side by side, so one request gets them all; not where large ones that nobody asked for
  // lie in between.
  bool is_dense() const {
    constexpr std::uint64_t kWorthAnotherRequest = 64 << 10;
    return end - begin <= wanted + kWorthAnotherRequest;
  }
};

Range range_of(std::span<const ShardIndex::Member> members);

// The members' payloads, pinned or in record.storage, one per member. kData where they are over record.most_bytes.
Result<void> fetch_members(const std::shared_ptr<const storage::Reader>& reader,
                           std::span<const ShardIndex::Member> members, memory::Record& record,
                           std::span<std::span<const std::byte>> payloads);

}  // namespace feedline::format
