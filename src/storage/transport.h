// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs many reads concurrently, using the kernel, threads, or a backend's own library.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/reader.h"
#include "storage/version.h"

namespace feedline::storage {

class Storage;

// A contiguous range of stored bytes.
struct Piece {
  std::shared_ptr<const Reader> reader;  // nullptr: the whole object at `path`
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;         // with a reader
  std::optional<Version> version;  // if set: kStorage if the object has another version
  bool is_shared = false;          // several samples need these bytes: prefetching fetches them once for all

  const std::string& name() const { return reader ? reader->name() : path; }
};

// A read request and its result.
struct Read {
  Piece piece;
  std::uint64_t most_bytes = memory::kLeastSampleBytes;  // kData if there are more bytes
  std::optional<Version> version;                        // kStorage if the object has another version
  memory::ByteBuffer buffer;
  // The result of a finished read: the bytes in `buffer`, or the error. There are fewer bytes than requested if the
  // object ends within the range.
  Result<std::span<const std::byte>> bytes = std::span<const std::byte>();
  // For a whole object: the version in the response, if the storage reports one.
  std::optional<Version> whole_version;
  bool was_near = false;  // nothing had to be waited for, because the bytes were in memory
};

// Runs reads without deadlines or cancellation; FetchQueue adds these. Not thread-safe, except for wake(). Requires: no
// reads are in flight when this object is destroyed.
class Transport {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;  // "io_uring", "threads", for explain()
  // Never blocks. The read belongs to this transport and must not move until it is finished. The next call to
  // finished() may start the read together with other reads.
  virtual void start(Read& read) = 0;
  // Returns any read that has finished. Waits until `until` or wake(); then returns nullptr.
  virtual Read* finished(Clock::time_point until) = 0;
  // Indicates that the result is not needed: the read may finish early with any error.
  virtual void give_up(Read& /*read*/) {}
  // May be called by any thread: ends the current wait of finished(), or the wait of its next call.
  virtual void wake() = 0;
};

// Performs the read on the calling thread and blocks; calls read_piece() if the read has a reader.
void read_now(const Storage& storage, Read& read);
void read_piece(Read& read);
// kStorage: the version of the reader differs from the requested one.
Result<void> check_piece_version(const Read& read);

}  // namespace feedline::storage
