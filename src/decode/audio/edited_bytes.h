// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "decode/audio/byte_source.h"

namespace feedline::decode {

// A file in which the `replaced` bytes from `at` on are replaced by others, to complete a header. Used by one thread.
class EditedBytes final : public ByteSource {
 public:
  // Requires: the source outlives this object, and has at least at + replaced bytes.
  EditedBytes(ByteSource& source, std::uint64_t at, std::uint64_t replaced, std::vector<std::byte> by)
      : source_(source), at_(at), replaced_(replaced), by_(std::move(by)) {}
  std::uint64_t size() const override { return source_.size() - replaced_ + by_.size(); }
  Result<std::span<const std::byte>> bytes(std::uint64_t offset, std::uint64_t count) override {
    const std::uint64_t end = at_ + by_.size();
    if (offset >= end) return source_.bytes(offset - end + at_ + replaced_, count);
    if (offset + count <= at_) return source_.bytes(offset, count);
    count = std::min(count, size() - offset);
    room_.clear();
    if (offset < at_) {
      FEEDLINE_TRY(const auto before, source_.bytes(offset, at_ - offset));
      room_.assign(before.begin(), before.end());
    }
    const std::uint64_t from = offset + room_.size() - at_, take = std::min(count - room_.size(), by_.size() - from);
    room_.insert(room_.end(), by_.begin() + static_cast<std::ptrdiff_t>(from),
                 by_.begin() + static_cast<std::ptrdiff_t>(from + take));
    if (room_.size() < count) {
      FEEDLINE_TRY(const auto after, source_.bytes(at_ + replaced_, count - room_.size()));
      room_.insert(room_.end(), after.begin(), after.end());
    }
    return std::span<const std::byte>(room_);
  }

 private:
  ByteSource& source_;
  const std::uint64_t at_, replaced_;
  const std::vector<std::byte> by_;
  std::vector<std::byte> room_;
};

}  // namespace feedline::decode
