// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory for pieces of objects that are fetched whole, shared by prefetching threads and by threads that need the
// first sample of an object.
//
//   a loader ──set_aside()──► Share    part of its memory budget; the limit is the sum of all shares
//   a fetch  ──wait_for(), try_for()──► Room    for a piece, for as long as its bytes are in memory
//
// If no loader has set a share yet (shards are scanned when they are opened), the constructor's limit applies.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace feedline::cache {

class Stop;

// The preferred number and size of an object's pieces in flight; both are smaller if memory is short.
inline constexpr std::size_t kPiecesAtOnce = 4;
inline constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
// The minimum piece size, however little memory there is: smaller requests are inefficient.
inline constexpr std::uint64_t kLeastPieceBytes = std::uint64_t{64} << 10;

// Thread-safe.
class PieceMemory : public std::enable_shared_from_this<PieceMemory> {
 public:
  // Bytes that count against the limit while this object exists.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept : memory_(std::move(other.memory_)), bytes_(other.bytes_), is_room_(other.is_room_) {}
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { end(); }

   private:
    friend class PieceMemory;
    Hold(std::shared_ptr<PieceMemory> memory, std::uint64_t bytes, bool is_room)
        : memory_(std::move(memory)), bytes_(bytes), is_room_(is_room) {}
    void end();

    std::shared_ptr<PieceMemory> memory_;
    std::uint64_t bytes_ = 0;
    bool is_room_ = false;
  };
  using Share = Hold;
  using Room = Hold;

  explicit PieceMemory(std::uint64_t without_loaders) : without_loaders_(without_loaders) {}

  Share set_aside(std::uint64_t bytes);
  // Returns the piece size for an object whose fetch starts now.
  std::uint64_t piece_bytes() const;

  // Waits until there is room or no other piece holds any, so that a fetch of one piece at a time always makes
  // progress. Returns nullopt if stop.stop() was called. stop: nullptr if the wait cannot be cancelled. Requires: the
  // caller holds no room.
  std::optional<Room> wait_for(std::uint64_t bytes, Stop* stop);
  // Returns nullopt if there is no room or another fetch waits for room.
  std::optional<Room> try_for(std::uint64_t bytes);
  // Returns whether another fetch is waiting, so that a fetch with several pieces should release some memory.
  bool is_waited_for() const;

  std::uint64_t most_held() const;  // peak bytes so far

 private:
  std::uint64_t limit() const;  // guarded by mutex_
  Room take(std::uint64_t bytes);

  const std::uint64_t without_loaders_;
  mutable std::mutex mutex_;
  std::condition_variable freed_cv_;
  // guarded by mutex_
  std::uint64_t set_aside_ = 0, held_ = 0, most_held_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace feedline::cache
