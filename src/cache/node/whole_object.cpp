// SPDX-License-Identifier: Apache-2.0
#include "cache/node/whole_object.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace feedline::cache {

using storage::Reader;
using storage::Storage;
using storage::Version;

// The queue that a fetch waits in, as far as stop() needs to know.
class Waking {
 public:
  Waking(Stop* stop, storage::FetchQueue& queue) : stop_(stop) {
    if (stop_ == nullptr) return;
    const std::lock_guard lock(stop_->mutex_);
    stop_->waits_ = &queue;
  }
  ~Waking() {
    if (stop_ == nullptr) return;
    const std::lock_guard lock(stop_->mutex_);
    stop_->waits_ = nullptr;
  }
  Waking(const Waking&) = delete;
  Waking& operator=(const Waking&) = delete;

 private:
  Stop* const stop_;
};

void Stop::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (waits_ != nullptr) waits_->wake();
}

bool Stop::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return is_stopped_;
}

namespace {

bool is_stopped(const Stop* stop) { return stop != nullptr && stop->is_stopped(); }

std::unexpected<Error> stopped() {
  return std::unexpected(Error{ErrorCode::kCancelled, "the loader is closed", {}, 0});
}

Result<void> fetch_in_turn(const Reader& reader, const Version& version, NodeCache::Output& output, const Stop* stop) {
  memory::ByteBuffer buffer;
  const auto room = buffer.resize(static_cast<std::size_t>(
      std::min(std::max<std::uint64_t>(kPieceBytes, reader.worthwhile_bytes()), version.bytes)));
  for (std::uint64_t at = 0; at < version.bytes;) {
    if (is_stopped(stop)) return stopped();
    const auto part = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), version.bytes - at)));
    FEEDLINE_TRY(const std::size_t got, reader.read_at(at, part));
    FEEDLINE_CHECK_OK(output.append(part.first(got)));
    if (got < part.size()) break;  // the output says how much is missing
    at += got;
  }
  return {};
}

struct PieceFetch : storage::Fetch {
  bool is_done = false;
};

// Piece i is in pieces[i % kPiecesAtOnce] from its start until it was appended.
Result<void> fetch_side_by_side(const std::shared_ptr<const Storage>& storage,
                                const std::shared_ptr<const Reader>& reader, const Version& version,
                                NodeCache::Output& output, Stop* stop) {
  using Clock = storage::FetchQueue::Clock;
  std::array<PieceFetch, kPiecesAtOnce> pieces;  // outlives the queue
  const auto queue = storage::make_fetch_queue(storage, storage::QueueKind::kBest);
  const Waking waking(stop, *queue);
  const std::uint64_t count = (version.bytes + kPieceBytes - 1) / kPieceBytes;
  std::uint64_t started = 0, appended = 0;
  while (appended < count) {
    for (; started < std::min<std::uint64_t>(count, appended + kPiecesAtOnce); ++started) {
      PieceFetch& piece = pieces[started % kPiecesAtOnce];
      const std::uint64_t offset = started * kPieceBytes;
      piece.is_done = false;
      piece.piece = {
          .reader = reader, .path = {}, .offset = offset, .bytes = std::min(kPieceBytes, version.bytes - offset)};
      piece.most_bytes = kPieceBytes;
      queue->start(piece);
    }
    if (is_stopped(stop)) return stopped();
    if (storage::Fetch* const fetch = queue->finished(Clock::now() + std::chrono::hours(1)))
      static_cast<PieceFetch*>(fetch)->is_done = true;
    for (; appended < started && pieces[appended % kPiecesAtOnce].is_done; ++appended) {
      const PieceFetch& piece = pieces[appended % kPiecesAtOnce];
      FEEDLINE_TRY(const auto bytes, piece.bytes);
      FEEDLINE_CHECK_OK(output.append(bytes));
      if (bytes.size() < piece.piece.bytes) return {};  // the output says how much is missing
    }
  }
  return {};
}

}  // namespace

Result<void> fetch_whole(const std::shared_ptr<const Storage>& storage, const std::shared_ptr<const Reader>& reader,
                         const Version& version, NodeCache::Output& output, Stop* stop) {
  const bool by_requests = storage->is_remote() && (version.bytes > kPieceBytes || stop != nullptr);
  FEEDLINE_CHECK_OK(by_requests ? fetch_side_by_side(storage, reader, version, output, stop)
                                : fetch_in_turn(*reader, version, output, stop));
  FEEDLINE_TRY(const Version now, reader->version());
  return storage::check_version(reader->name(), version, now);
}

}  // namespace feedline::cache
