// SPDX-License-Identifier: Apache-2.0
#include "storage/file_read.h"

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "storage/local_file.h"

namespace feedline::storage {
namespace {

constexpr auto kMostOffset = std::uint64_t{std::numeric_limits<off_t>::max()};

}  // namespace

FileRead::FileRead(const std::string& name, std::span<std::byte> room, std::uint64_t offset)
    : name_(&name), room_(room), offset_(offset) {
  // a range that off_t cannot represent is past the end of every file; the kernel would return EINVAL
  std::uint64_t end = 0;
  ended_ = __builtin_add_overflow(offset, room.size(), &end) || end > kMostOffset;
}

FileRead::FileRead(const std::string& name, memory::ByteBuffer& buffer, std::uint64_t file_bytes, std::uint64_t most)
    : name_(&name), buffer_(&buffer), bytes_(file_bytes), most_(std::min(most, kMostOffset)) {
  take_room();
}

void FileRead::take_room() {
  constexpr std::uint64_t kSmallest = 4096;
  if (bytes_ > most_) return fail(memory::too_large(bytes_, most_).error());
  const std::uint64_t bytes = std::min(std::max(bytes_ + 1, kSmallest), most_ + 1);
  auto room = buffer_->make_room(bytes, bytes);
  if (!room) return fail(std::move(room).error());
  room_ = *room;
  done_ = 0;
}

// The buffer, including the extra byte, is full, so the file has grown.
void FileRead::grow() {
  const std::uint64_t room = room_.size();
  bytes_ = room > most_ ? room : std::min(2 * room, most_);
  take_room();
}

void FileRead::fail(Error error) {
  error.where.shard = *name_;
  error_ = std::move(error);
  ended_ = true;
}

std::optional<FileRead::Step> FileRead::next() const {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // io_uring has 32-bit sizes; pread(2) returns at most 2 GiB
  if (ended_ || done_ == room_.size()) return {};
  const auto left = room_.subspan(done_);
  return Step{left.first(std::min(left.size(), kMost)), offset_ + done_};
}

void FileRead::got(std::int64_t bytes) {
  if (bytes == -EINTR) return;
  if (bytes < 0) return fail(file_error("cannot read", *name_, static_cast<int>(-bytes)).error());
  if (bytes == 0) ended_ = true;
  done_ += static_cast<std::size_t>(bytes);
  if (buffer_ != nullptr && done_ == room_.size()) grow();
}

Result<std::span<const std::byte>> FileRead::result() const {
  if (error_) return std::unexpected(*error_);
  return room_.first(done_);
}

}  // namespace feedline::storage
