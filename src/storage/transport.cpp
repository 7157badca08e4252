// SPDX-License-Identifier: Apache-2.0
#include "storage/transport.h"

#include "storage/storage.h"

namespace feedline::storage {

void read_now(const Storage& storage, Read& read) {
  if (read.piece.reader) return read_piece(read);
  read.bytes = read.version ? storage.read_version(read.piece.path, read.buffer, read.most_bytes, *read.version)
                            : storage.read_all(read.piece.path, read.buffer, read.most_bytes);
}

void read_piece(Read& read) {
  read.bytes = [&]() -> Result<std::span<const std::byte>> {
    FEEDLINE_CHECK_OK(check_piece_version(read));
    FEEDLINE_TRY(const auto room, read.buffer.make_room(read.piece.bytes, read.most_bytes));
    FEEDLINE_TRY(const std::size_t got, read.piece.reader->read_at(read.piece.offset, room));
    return room.first(got);
  }();
}

Result<void> check_piece_version(const Read& read) {
  if (!read.version) return {};
  FEEDLINE_TRY(const Version now, read.piece.reader->version());
  return check_version(read.piece.reader->name(), *read.version, now);
}

}  // namespace feedline::storage
