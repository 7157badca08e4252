// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "feedline/error.h"

namespace feedline::decode {

// Random access to the bytes of one file. Used by one thread.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Returns the bytes [offset, offset + count), or fewer if the file ends before. Valid until the next call. kStorage:
  // reading failed.
  virtual Result<std::span<const std::byte>> bytes(std::uint64_t offset, std::uint64_t count) = 0;
  // Identifies the contents by the object's name and version; nullopt: the bytes are in memory.
  virtual std::optional<std::uint64_t> key() const { return std::nullopt; }
};

// Bytes in memory, which must outlive this object.
class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::span<const std::byte> file) : file_(file) {}
  std::uint64_t size() const override { return file_.size(); }
  Result<std::span<const std::byte>> bytes(std::uint64_t offset, std::uint64_t count) override {
    const std::uint64_t begin = std::min<std::uint64_t>(offset, file_.size());
    return file_.subspan(begin, std::min<std::uint64_t>(count, file_.size() - begin));
  }

 private:
  std::span<const std::byte> file_;
};

}  // namespace feedline::decode
