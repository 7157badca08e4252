// SPDX-License-Identifier: Apache-2.0
#include "cache/node/whole_object.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "storage/fetch.h"

namespace feedline::cache {

using storage::Reader;
using storage::Storage;
using storage::Version;

namespace {

std::unexpected<Error> stopped() {
  return std::unexpected(Error{ErrorCode::kCancelled, "the loader is closed", {}, 0});
}

// The output that receives the fetched bytes in order.
struct Sink {
  NodeCache::Output& output;
  std::optional<storage::RunningSum>& sum;  // of the kind of the expected checksum
  Result<void> append(std::span<const std::byte> bytes) {
    if (sum) sum->add(bytes);
    return output.append(bytes);
  }
};

Result<void> fetch_in_turn(const Whole& whole, const Reader& reader, Sink output, Stop* stop) {
  const std::uint64_t bytes = whole.version.bytes;
  const std::uint64_t piece =
      std::min(std::max<std::uint64_t>(whole.memory.piece_bytes(), reader.worthwhile_bytes()), bytes);
  const auto held = whole.memory.wait_for(piece, stop);
  if (!held) return stopped();
  memory::ByteBuffer buffer;
  const auto room = buffer.resize(static_cast<std::size_t>(piece));
  for (std::uint64_t at = 0; at < bytes;) {
    if (is_stopped(stop)) return stopped();
    const auto part = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), bytes - at)));
    FEEDLINE_TRY(const std::size_t got, reader.read_at(at, part));
    FEEDLINE_CHECK_OK(output.append(part.first(got)));
    if (got < part.size()) break;  // the output reports the missing bytes
    at += got;
  }
  return {};
}

// The pieces of one object. Each piece holds memory from its request until it is appended. Memory is reused for the
// next piece, unless another fetch has no memory; in that case this fetch continues with memory for one piece.
class Pieces {
 public:
  // first: memory for a piece of this size
  Pieces(const Whole& whole, std::shared_ptr<const Reader> reader, std::uint64_t piece_bytes, PieceMemory::Room first)
      : memory_(whole.memory), reader_(std::move(reader)), bytes_(whole.version.bytes), piece_bytes_(piece_bytes) {
    slots_.front().room.emplace(std::move(first));
    idle_.push_back(&slots_.front());
  }
  bool are_all_appended() const { return next_ >= bytes_ && under_way_.empty(); }

  void start_more(storage::FetchQueue& queue) {
    for (Slot* slot = nullptr; next_ < bytes_ && (slot = free_slot()) != nullptr;) {
      const std::uint64_t bytes = std::min(piece_bytes_, bytes_ - next_);
      slot->is_done = false;
      slot->piece = {.reader = reader_, .path = {}, .offset = next_, .bytes = bytes, .version = {}};
      slot->most_bytes = piece_bytes_;
      next_ += bytes;
      under_way_.push_back(slot);
      queue.start(*slot);
    }
  }
  static void note_done(storage::Fetch& fetch) { static_cast<Slot&>(fetch).is_done = true; }

  // Appends completed pieces in order. Returns false if the object ended too early.
  Result<bool> append_to(Sink& output) {
    while (!under_way_.empty() && under_way_.front()->is_done) {
      Slot& slot = *under_way_.front();
      under_way_.pop_front();
      idle_.push_back(&slot);
      FEEDLINE_TRY(const auto bytes, slot.bytes);
      FEEDLINE_CHECK_OK(output.append(bytes));
      if (bytes.size() < slot.piece.bytes) return false;
    }
    while (idle_.size() > (under_way_.empty() ? 1 : 0) && memory_.is_waited_for()) {
      idle_.back()->buffer = {};
      idle_.back()->room.reset();
      idle_.pop_back();
    }
    return true;
  }

 private:
  struct Slot : storage::Fetch {
    std::optional<PieceMemory::Room> room;  // none: not in use
    bool is_done = false;
  };
  Slot* free_slot() {
    if (!idle_.empty()) {
      Slot* const slot = idle_.back();
      idle_.pop_back();
      return slot;
    }
    const auto unused = std::ranges::find_if(slots_, [](const Slot& slot) { return !slot.room; });
    if (unused == slots_.end()) return nullptr;
    unused->room = memory_.try_for(piece_bytes_);
    return unused->room ? &*unused : nullptr;
  }

  PieceMemory& memory_;
  const std::shared_ptr<const Reader> reader_;
  const std::uint64_t bytes_, piece_bytes_;
  std::uint64_t next_ = 0;  // offset of the next piece
  std::array<Slot, kPiecesAtOnce> slots_;
  std::deque<Slot*> under_way_;
  std::vector<Slot*> idle_;  // with memory
};

Result<void> fetch_side_by_side(const Whole& whole, const std::shared_ptr<const Reader>& reader, Sink output,
                                Stop* stop) {
  using Clock = storage::FetchQueue::Clock;
  const std::uint64_t piece_bytes = whole.memory.piece_bytes();
  auto room = whole.memory.wait_for(piece_bytes, stop);
  if (!room) return stopped();
  Pieces pieces(whole, reader, piece_bytes, std::move(*room));  // outlive the queue
  const auto queue = storage::make_fetch_queue(whole.storage, storage::QueueKind::kBest);
  const Waking waking(stop, [&queue] { queue->wake(); });
  while (!pieces.are_all_appended()) {
    pieces.start_more(*queue);
    if (is_stopped(stop)) return stopped();
    if (storage::Fetch* const fetch = queue->finished(Clock::now() + std::chrono::hours(1))) Pieces::note_done(*fetch);
    FEEDLINE_TRY(const bool goes_on, pieces.append_to(output));
    if (!goes_on) break;  // the output reports the missing bytes
  }
  return {};
}

Result<void> fetch_whole(const Whole& whole, const std::shared_ptr<const Reader>& reader, Sink output, Stop* stop) {
  const Version& version = whole.version;
  const bool by_requests =
      whole.storage->is_remote() && (version.bytes > whole.memory.piece_bytes() || stop != nullptr);
  FEEDLINE_CHECK_OK(by_requests ? fetch_side_by_side(whole, reader, output, stop)
                                : fetch_in_turn(whole, *reader, output, stop));
  FEEDLINE_TRY(const Version now, reader->version());
  return storage::check_version(reader->name(), version, now);
}

}  // namespace

Result<std::optional<HeldCopy>> copy_whole(NodeCache& cache, const Whole& whole, NodeCache::Busy busy, Stop* stop) {
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
  auto cached = cache.keep(identity, whole.version, NodeCache::Check::kOnce, fill, busy);
  if (!cached && std::exchange(is_other, false))
    cached = cache.keep(identity, whole.version, NodeCache::Check::kOnce, fill, busy);
  if (cached && *cached && said) cache.note_compared();
  return cached;
}

}  // namespace feedline::cache
