// SPDX-License-Identifier: Apache-2.0
#pragma once

// One stored object (a file, or a remote object), open for random reads.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "feedline/error.h"

namespace feedline::storage {

// Size and modification time, or a digest of the storage's version (an ETag), which an index stores to identify its
// object.
struct ObjectStat {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;  // since 1970; 0 if the storage has no times or uses tags
  std::uint64_t tag = 0;      // 0 if the storage has none
  // Time and tag combined in one number, stored along with the size.
  std::uint64_t stamp() const { return static_cast<std::uint64_t>(mtime_ns) ^ tag; }
  friend bool operator==(const ObjectStat&, const ObjectStat&) = default;
};

// Every method is thread-safe: a reader has no position.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual Result<ObjectStat> stat() const = 0;  // queried at each call
  // The version that read_at() reads. A backend that pins reads to the opened version returns that version without a
  // query.
  virtual Result<ObjectStat> version() const { return stat(); }
  // Fills `out` from `offset`, retrying short reads. Returns the number of bytes read; fewer than requested means the
  // end of the object, which the caller may treat as an error.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // The bytes [offset, offset + bytes) without a copy if the object is mapped; otherwise nullopt (use read_at).
  // kStorage if the object has become shorter since it was opened. Valid as long as the reader.
  virtual Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const = 0;
  // The whole object if it is mapped, not loaded yet; otherwise empty. Call view() for a part before accessing it.
  virtual std::span<const std::byte> mapping() const { return {}; }
  // The number of bytes that take hardly longer to read than one: a good read size for scanning headers. Default: a
  // header, a small member and the next header; more would fetch unneeded payloads.
  virtual std::size_t worthwhile_bytes() const { return 4096; }
  // The descriptor of a file that pread(2) reads like read_at(), for asynchronous reads by the kernel; -1 if there is
  // none.
  virtual int descriptor() const { return -1; }
  virtual const std::string& name() const = 0;
};

}  // namespace feedline::storage
