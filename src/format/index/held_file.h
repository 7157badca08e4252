// SPDX-License-Identifier: Apache-2.0
#pragma once

// An in-memory copy of a file, filled block by block on first access.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/reader.h"

namespace feedline::format {

// Thread-safe and lock-free: no thread waits for a block that another thread is reading.
class HeldFile {
 public:
  // Returns nullptr if there is not enough memory. Pages use memory only after they are written.
  static std::unique_ptr<HeldFile> make(std::uint64_t bytes);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  // Returns the bytes [offset, offset + count), after reading missing blocks. The bytes are valid as long as this
  // object exists. Returns nullptr if another thread is reading one of the blocks, or if reading fails; the caller must
  // then read from the file and handle errors. Requires: the range is inside the file.
  const std::byte* find(const storage::Reader& reader, std::uint64_t offset, std::uint64_t count);
  // Prefetches these bytes into the processor's caches for a later find(). Requires: the range is inside the file.
  void prefetch(std::uint64_t offset, std::uint64_t count) const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  // A block contains dozens of windows, because a window of tokens takes a few KB. Reading a block takes 10 us from the
  // page cache, or one request to a device.
  static constexpr std::uint64_t kBlock = 64 << 10;
  enum class State : std::uint8_t { kAbsent, kComing, kThere };

  HeldFile(std::byte* data, std::uint64_t bytes);
  bool bring(const storage::Reader& reader, std::uint64_t block);

  std::byte* const data_;
  const std::uint64_t bytes_;
  std::vector<std::atomic<State>> states_;  // one per block
};

}  // namespace feedline::format
