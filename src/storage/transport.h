// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads carried out, many at once: by the kernel, by threads, or by a storage's own library.

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

// Stored bytes that lie side by side.
struct Piece {
  std::shared_ptr<const Reader> reader;  // nullptr: the whole object at `path`
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;         // with a reader
  std::optional<Version> version;  // without: kStorage where the object has another one

  const std::string& name() const { return reader ? reader->name() : path; }
};

// One read: what is asked for, and what came of it.
struct Read {
  Piece piece;
  std::uint64_t most_bytes = memory::kLeastSampleBytes;  // kData where there are more
  std::optional<Version> version;                        // kStorage where the object has another one
  memory::ByteBuffer buffer;
  // Once finished: in `buffer`, or why not. Fewer than asked for: the object ends there.
  Result<std::span<const std::byte>> bytes = std::span<const std::byte>();
  bool was_near = false;  // nothing had to be waited for: the bytes were in memory
};

// Whoever carries reads out. It knows neither deadlines nor cancelling: those are FetchQueue's, once for all.
// For one thread at a time, but for wake(). Requires: nothing is under way when it is destroyed.
class Transport {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;  // "io_uring", "threads", for explain()
  // Never waits for the read. It stays where it is, and is this transport's alone, until it is finished. It may be
  // begun with the next finished(), together with others.
  virtual void start(Read& read) = 0;
  // A read that is finished, in any order. Waits for one until `until`, or until wake(): then nullptr.
  virtual Read* finished(Clock::time_point until) = 0;
  // Nobody wants what is under way in this read any more: it may finish early, with any error.
  virtual void give_up(Read& /*read*/) {}
  // Any thread: ends the wait of finished(), or of its next call.
  virtual void wake() = 0;
};

// The read done by the calling thread, which waits for it; read_piece() where it has a reader.
void read_now(const Storage& storage, Read& read);
void read_piece(Read& read);
// kStorage where the piece's reader has another version than the read asks for.
Result<void> check_piece_version(const Read& read);

}  // namespace feedline::storage
