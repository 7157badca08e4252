// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores decompressed blocks in a memory-mapped file in the cache folder, if access is random and the blocks do not fit
// into the block cache. The kernel can release the memory of mapped blocks and read them again.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::format {

// Thread-safe. The file has no name, and is deleted when the last user of the store releases it. After fork(), a child
// writes to a separate file, and can still read its parent's blocks.
class BlockStore : public std::enable_shared_from_this<BlockStore> {
 public:
  // The files of all processes may use this fraction of the disk space that is free when the file is created. This is
  // the default of `cache_limit`.
  static constexpr double kShare = 0.5;

  // `most` is the maximum size of the file in bytes. If `most` is nullopt, the file is limited only by kShare.
  explicit BlockStore(std::optional<std::uint64_t> most = std::nullopt) : most_(most) {}
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;
  ~BlockStore();

  // Writes the parts consecutively and returns the mapped bytes, which are valid as long as the store exists. Returns
  // nullopt if the file cannot be written or would exceed its limit; problem() then returns the reason.
  std::optional<std::span<const std::byte>> add(std::span<const std::span<const std::byte>> parts);

  std::uint64_t bytes() const;  // of all blocks
  // Returns the number of bytes that the file may have, or 0 if the cache folder cannot be used. Writes nothing.
  std::uint64_t room() const;
  // Returns the reason why a block was not stored, or an empty string if all blocks were stored.
  std::string problem() const;

 private:
  // A range of the file that is allocated and mapped as a whole, because the number of mappings per process is limited.
  struct Extent {
    std::byte* begin = nullptr;
    std::uint64_t offset = 0, bytes = 0, used = 0;
  };
  struct Room {
    std::byte* begin;
    std::uint64_t offset;
    const storage::FileDescriptor* file;
  };
  Result<void> create_file();
  Result<Room> reserve(std::uint64_t bytes);

  mutable ForkMutex mutex_;
  const std::optional<std::uint64_t> most_;
  std::uint64_t least_free_ = 0;  // bytes that remain free on the disk; this and the rest are guarded by mutex_
  std::string folder_, problem_;
  std::vector<storage::FileDescriptor> files_;  // this process writes to the last one
  std::uint32_t generation_ = 0;                // of the process that created it
  std::uint64_t file_bytes_ = 0, bytes_ = 0;
  std::vector<Extent> extents_;
};

}  // namespace feedline::format
