// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stored object (a local file or a remote object) that is open for random reads.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "feedline/error.h"

namespace feedline::storage {

// The size and modification time of an object, or a digest of the storage's version (an ETag). An index stores them to
// identify its object.
struct ObjectStat {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;  // since 1970; 0 if the storage has no times or uses tags
  std::uint64_t tag = 0;      // 0 if the storage has none
  // Combines time and tag into one number, which is stored along with the size.
  std::uint64_t stamp() const { return static_cast<std::uint64_t>(mtime_ns) ^ tag; }
  friend bool operator==(const ObjectStat&, const ObjectStat&) = default;
};

// Every method is thread-safe, because a reader has no position.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual Result<ObjectStat> stat() const = 0;  // queried at each call
  // Returns the version that read_at() reads. A backend that pins reads to the opened version returns it without a
  // request.
  virtual Result<ObjectStat> version() const { return stat(); }
  // Fills `out` with data from `offset` on, and continues after partial reads. Returns the number of bytes read. Fewer
  // bytes than requested mean that the object ends there, which the caller may treat as an error.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // Returns the bytes [offset, offset + bytes) without a copy if the object is mapped, otherwise nullopt (use
  // read_at()). kStorage: the object has become shorter since it was opened. The result is valid as long as the reader
  // exists.
  virtual Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const = 0;
  // Returns the whole object if it is mapped, without loading it; otherwise an empty span. Call view() for a part
  // before accessing it.
  virtual std::span<const std::byte> mapping() const { return {}; }
  // Returns the number of bytes that take hardly longer to read than one byte: a good read size for scanning headers.
  // The default is enough for a header, a small member and the next header; reading more would fetch unneeded data.
  virtual std::size_t worthwhile_bytes() const { return 4096; }
  // Returns a file descriptor from which pread(2) reads the same bytes as read_at(), for asynchronous reads by the
  // kernel; -1 if there is none.
  virtual int descriptor() const { return -1; }
  virtual const std::string& name() const = 0;
};

}  // namespace feedline::storage
