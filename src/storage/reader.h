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

// Size and modification time, or a digest of what the storage itself calls the version (an ETag): what an index
// remembers of the object it describes.
struct ObjectStat {
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;  // since 1970; 0 where the storage has none, or has a tag
  std::uint64_t tag = 0;      // 0 where the storage has none
  // Time and tag as one number, for what is kept beside the size.
  std::uint64_t stamp() const { return static_cast<std::uint64_t>(mtime_ns) ^ tag; }
  friend bool operator==(const ObjectStat&, const ObjectStat&) = default;
};

// Every method is thread-safe: a reader has no position.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual Result<ObjectStat> stat() const = 0;  // asked anew at each call
  // What read_at() gives the bytes of. A storage that holds its reads to the version it was opened with says that one,
  // and asks nobody.
  virtual Result<ObjectStat> version() const { return stat(); }
  // Fills `out` from `offset`; loops over short reads. Fewer bytes than asked: end of object; the caller decides
  // whether that is an error. Returns the bytes read.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // The bytes [offset, offset + bytes) without a copy where the object is mapped; nullopt where it is not (then
  // use read_at). kStorage where the object is shorter by now than when it was opened. Valid as long as the reader.
  virtual Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const = 0;
  // The whole object where it is mapped, none of it read yet; empty: it is not. A part has to be asked for by view()
  // before it is touched.
  virtual std::span<const std::byte> mapping() const { return {}; }
  // How many bytes take hardly longer to read than one: what is worth asking for at a time by who goes from header to
  // header. Here: a header, a small member and the next header; more would fetch payloads that nobody asked for.
  virtual std::size_t worthwhile_bytes() const { return 4096; }
  // Of a file that pread(2) reads just as read_at() would, for a kernel that reads asynchronously; -1: there is none.
  virtual int descriptor() const { return -1; }
  virtual const std::string& name() const = 0;
};

}  // namespace feedline::storage
