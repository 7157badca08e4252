// SPDX-License-Identifier: Apache-2.0
#pragma once

// The logic of reading a file, which blocking calls and io_uring share.
//
//   next()   the next offset and destination; empty when the read is finished
//   got()    reports the result of pread(2) for it
//
// A read continues after interruptions and partial reads until the buffer is full or the file ends. For a whole file,
// the buffer is one byte larger than the reported size. A file that has grown fills this buffer, and is read again from
// its start with a larger buffer. Pseudo files report a size of 0 but have contents.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "feedline/error.h"
#include "memory/record.h"

namespace feedline::storage {

class FileRead {
 public:
  struct Step {
    std::span<std::byte> room;
    std::uint64_t offset = 0;
  };
  // Reads a range into `room`. Requires: `name`, which is used in errors, outlives this object.
  FileRead(const std::string& name, std::span<std::byte> room, std::uint64_t offset);
  // Reads a whole file with a reported size of `file_bytes` into `buffer`. kData: the file has more than `most` bytes,
  // as its reported size or the extra byte shows. Requires: `name` and `buffer` outlive this object.
  FileRead(const std::string& name, memory::ByteBuffer& buffer, std::uint64_t file_bytes, std::uint64_t most);

  std::optional<Step> next() const;  // the same until got()
  void got(std::int64_t bytes);      // or -errno
  // Requires: next() has returned nullopt.
  Result<std::span<const std::byte>> result() const;

 private:
  void take_room();
  void grow();
  void fail(Error error);

  const std::string* name_;
  std::span<std::byte> room_;
  std::uint64_t offset_ = 0;
  std::size_t done_ = 0;  // bytes in room_
  bool ended_ = false;
  std::optional<Error> error_;
  // whole files only
  memory::ByteBuffer* buffer_ = nullptr;
  std::uint64_t bytes_ = 0;  // the file's size, or the next size to try
  std::uint64_t most_ = 0;
};

}  // namespace feedline::storage
