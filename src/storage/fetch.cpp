// SPDX-License-Identifier: Apache-2.0
#include "storage/fetch.h"

#include <utility>

#include "storage/storage.h"
#include "storage/thread_queue.h"

namespace feedline::storage {

std::unique_ptr<FetchQueue> make_fetch_queue(std::shared_ptr<const Storage> storage, QueueKind kind) {
  auto queue = kind == QueueKind::kBest ? storage->own_queue() : nullptr;
  if (!queue) queue = std::make_unique<ThreadQueue>(std::move(storage));
  return queue;
}

void fetch_now(const Storage& storage, Fetch& fetch) {
  if (fetch.piece.reader) return read_piece(fetch);
  fetch.bytes = storage.read_all(fetch.piece.path, fetch.buffer, fetch.most_bytes);
}

void read_piece(Fetch& fetch) {
  fetch.bytes = [&]() -> Result<std::span<const std::byte>> {
    FEEDLINE_TRY(const auto room, fetch.buffer.make_room(fetch.piece.bytes, fetch.most_bytes));
    FEEDLINE_TRY(const std::size_t got, fetch.piece.reader->read_at(fetch.piece.offset, room));
    return room.first(got);
  }();
}

}  // namespace feedline::storage
