// SPDX-License-Identifier: Apache-2.0
#pragma once

// What reading a file means, told once for all who make the system calls: a blocking call, io_uring.
//
//   next()   where to read from, and into which memory; nothing: the read is finished
//   got()    what pread(2) gave for it
//
// A read goes on after interruptions and after fewer bytes than it asked for, until its room is full or the file ends.
// A whole file has a byte more room than it says it has: one that grew since fills it, and is read again from its
// beginning, with more room. Pseudo files say that they have no bytes, and hold some.

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
  // The range that fills `room`. Requires: `name`, for errors, outlives this.
  FileRead(const std::string& name, std::span<std::byte> room, std::uint64_t offset);
  // All of a file that says that it has `file_bytes`, into `buffer`. kData where it has over `most`: by its word, or by
  // the byte that is one too many. Requires: `name` and `buffer` outlive this.
  FileRead(const std::string& name, memory::ByteBuffer& buffer, std::uint64_t file_bytes, std::uint64_t most);

  std::optional<Step> next() const;  // the same until got()
  void got(std::int64_t bytes);      // or -errno
  // Requires: next() has nothing.
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
  // of a whole file
  memory::ByteBuffer* buffer_ = nullptr;
  std::uint64_t bytes_ = 0;  // that it has, or that are tried next
  std::uint64_t most_ = 0;
};

}  // namespace feedline::storage
