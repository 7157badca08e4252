// SPDX-License-Identifier: Apache-2.0
#pragma once

// A copy of a file in memory that is made block by block, when a block is first asked for.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/reader.h"

namespace feedline::format {

// Thread-safe, without locks: nobody waits for a block that another thread is reading.
class HeldFile {
 public:
  // nullptr: there is no memory for it. The pages count as used once they are written.
  static std::unique_ptr<HeldFile> make(std::uint64_t bytes);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  // The bytes [offset, offset + count), after reading what is missing of them; valid as long as this object. nullptr:
  // read them yourself, as another thread is at it or reading failed, which you will see. Requires: inside the file.
  const std::byte* find(const storage::Reader& reader, std::uint64_t offset, std::uint64_t count);
  // Has the processor bring these bytes into its caches, for a find() that is to come. Requires: inside the file.
  void prefetch(std::uint64_t offset, std::uint64_t count) const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  // Windows of tokens take some KB: a block serves dozens of them, for one read of 10 us from the page cache and one
  // request to a device.
  static constexpr std::uint64_t kBlock = 64 << 10;
  enum class State : std::uint8_t { kAbsent, kComing, kThere };

  HeldFile(std::byte* data, std::uint64_t bytes);
  bool bring(const storage::Reader& reader, std::uint64_t block);

  std::byte* const data_;
  const std::uint64_t bytes_;
  std::vector<std::atomic<State>> states_;  // of the blocks
};

}  // namespace feedline::format
