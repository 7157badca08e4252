// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads that are under way while their caller does something else: what reading ahead is made of.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/reader.h"

namespace feedline::storage {

class Storage;

// Stored bytes that lie side by side.
struct Piece {
  std::shared_ptr<const Reader> reader;  // nullptr: the whole object at `path`
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // with a reader
};

// One read. Its owner keeps it where it is, and off its hands, until the queue says that it is finished.
struct Fetch {
  Piece piece;
  std::uint64_t most_bytes = memory::kLeastSampleBytes;  // kData where there are more
  memory::ByteBuffer buffer;
  // Once finished: in `buffer`, or why not. Fewer than asked for: the object ends there.
  Result<std::span<const std::byte>> bytes = std::span<const std::byte>();
  bool was_near = false;  // nothing had to be waited for: the bytes were in memory
};

// Many reads at once. For one thread, but for wake(). Requires: nothing is under way when it is destroyed.
class FetchQueue {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~FetchQueue() = default;

  virtual std::string_view name() const = 0;  // "io_uring", "threads", for explain()
  virtual void start(Fetch& fetch) = 0;       // never waits for the read
  // A fetch that is finished, in any order. Waits for one until `until`, or until wake(): then nullptr.
  virtual Fetch* finished(Clock::time_point until) = 0;
  // Any thread: ends the wait of finished(), or of its next call.
  virtual void wake() = 0;
};

enum class QueueKind : std::uint8_t {
  kBest,     // the storage's own where it has one
  kThreads,  // threads that wait, one read each
};

std::unique_ptr<FetchQueue> make_fetch_queue(std::shared_ptr<const Storage> storage, QueueKind kind);

// The fetch done by the calling thread, which waits for it; read_piece() where it has a reader.
void fetch_now(const Storage& storage, Fetch& fetch);
void read_piece(Fetch& fetch);

}  // namespace feedline::storage
