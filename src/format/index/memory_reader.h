// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Reader for bytes in memory, for tests and fuzzers.

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "storage/reader.h"

namespace feedline::format {

// The bytes must outlive the reader.
class MemoryReader final : public storage::Reader {
 public:
  explicit MemoryReader(std::string_view bytes) : bytes_(bytes) {}

  Result<storage::ObjectStat> stat() const override { return storage::ObjectStat{bytes_.size(), 1}; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= bytes_.size() || out.empty()) return 0;
    const std::size_t count = std::min<std::size_t>(out.size(), bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + offset, count);
    return count;
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string_view bytes_;
  std::string name_ = "memory.tar";
};

}  // namespace feedline::format
