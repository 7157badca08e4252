// SPDX-License-Identifier: Apache-2.0
#include "cache/node/whole_object.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
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

// What is fetched goes through here, in order.
struct Sink {
  NodeCache::Output& output;
  std::optional<storage::RunningSum>& sum;  // of what somebody vouches for
  Result<void> append(std::span<const std::byte> bytes) {
    if (sum) sum->add(bytes);
    return output.append(bytes);
  }
};

Result<void> fetch_in_turn(const Reader& reader, const Version& version, Sink output, const Stop* stop) {
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
                                const std::shared_ptr<const Reader>& reader, const Version& version, Sink output,
                                Stop* stop) {
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

Result<void> fetch_whole(const Whole& whole, const std::shared_ptr<const Reader>& reader, Sink output, Stop* stop) {
  const Version& version = whole.version;
  const bool by_requests = whole.storage->is_remote() && (version.bytes > kPieceBytes || stop != nullptr);
  FEEDLINE_CHECK_OK(by_requests ? fetch_side_by_side(whole.storage, reader, version, output, stop)
                                : fetch_in_turn(*reader, version, output, stop));
  FEEDLINE_TRY(const Version now, reader->version());
  return storage::check_version(reader->name(), version, now);
}

}  // namespace

Result<std::optional<Kept>> keep_whole(NodeCache& cache, const Whole& whole, NodeCache::Busy busy, Stop* stop) {
  std::optional<storage::ObjectSum> said;
  bool is_other = false;
  const auto fill = [&](NodeCache::Output& output) -> Result<void> {
    FEEDLINE_TRY(said, whole.storage->known_sum(whole.path, whole.version));
    FEEDLINE_TRY(const auto reader, whole.stored());
    std::optional<storage::RunningSum> sum;
    if (said) sum.emplace(said->kind);
    FEEDLINE_CHECK_OK(fetch_whole(whole, reader, Sink{output, sum}, stop));
    if (!sum) return {};
    const storage::ObjectSum read = sum->sum();
    is_other = read != *said;
    if (!is_other) return {};
    return storage::sums_differ(whole.path, *said, read, whole.storage->who_knows_sums());
  };
  const std::string identity = whole.storage->identity(whole.path);
  auto kept = cache.keep(identity, whole.version, NodeCache::Check::kOnce, fill, busy);
  if (!kept && std::exchange(is_other, false))
    kept = cache.keep(identity, whole.version, NodeCache::Check::kOnce, fill, busy);
  if (kept && *kept && said) cache.note_compared();
  return kept;
}

}  // namespace feedline::cache
