// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "feedline/error.h"

namespace feedline::decode {

// The bytes of one video file, wherever they are stored. Every method is thread-safe.
class VideoFile {
 public:
  virtual ~VideoFile() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out` with data from `offset` on. Returns the number of bytes read; fewer than requested mean that the file
  // ends there.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

// Reads exactly out.size() bytes. kData: the file is too short.
Result<void> read_exactly(const VideoFile& source, std::uint64_t offset, std::span<std::byte> out);

// A file in memory, which must outlive this object.
class VideoInMemory final : public VideoFile {
 public:
  explicit VideoInMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto from = bytes_.subspan(std::min<std::uint64_t>(offset, bytes_.size()));
    const auto taken = from.first(std::min(from.size(), out.size()));
    std::ranges::copy(taken, out.begin());
    return taken.size();
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace feedline::decode
