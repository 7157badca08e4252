// SPDX-License-Identifier: Apache-2.0
#include "storage/fetch.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/orphaned_buffers.h"
#include "storage/storage.h"
#include "storage/thread_transport.h"

namespace feedline::storage {

// The read that is passed to the transport. The read completes even if its fetch no longer exists.
struct FetchQueue::Work : Read {
  Fetch* fetch = nullptr;
  Clock::time_point started;
  std::optional<Deadlines::iterator> deadline;
};

struct FetchQueue::Carrier final : OrphanedBuffers {
  std::vector<std::unique_ptr<Work>> all;
  std::vector<Work*> free;
  std::unique_ptr<Transport> transport;  // destroyed first: reads in flight may write to the other members

  Work& take() {
    if (free.empty()) {
      free.reserve(all.size() + 1);  // so that returning one needs no memory
      free.push_back(all.emplace_back(std::make_unique<Work>()).get());
    }
    Work* const work = free.back();
    free.pop_back();
    return *work;
  }
  bool is_over() override {
    while (free.size() < all.size()) {
      Read* const read = transport->finished({});
      if (read == nullptr) return false;
      free.push_back(static_cast<Work*>(read));
    }
    return true;
  }
};

FetchQueue::FetchQueue(std::unique_ptr<Transport> transport) : carrier_(std::make_unique<Carrier>()) {
  carrier_->transport = std::move(transport);
}

FetchQueue::~FetchQueue() {
  for (const auto& work : carrier_->all)
    if (work->fetch != nullptr) carrier_->transport->give_up(*work);
  if (!carrier_->is_over()) orphan(std::move(carrier_));
}

std::string_view FetchQueue::name() const { return carrier_->transport->name(); }
void FetchQueue::wake() { carrier_->transport->wake(); }

void FetchQueue::start(Fetch& fetch) {
  Work& work = carrier_->take();
  std::swap<Read>(fetch, work);
  fetch.work_ = &work;
  work.fetch = &fetch;
  work.bytes = std::span<const std::byte>();
  work.was_near = false;
  if (fetch.deadline != Clock::time_point::max()) {
    work.started = Clock::now();
    work.deadline = deadlines_.emplace(fetch.deadline, &work);
  }
  carrier_->transport->start(work);
}

// Returns the read to its owner; the transport completes a copy.
void FetchQueue::detach(Work& work, Error error) {
  Fetch& fetch = *std::exchange(work.fetch, nullptr);
  if (work.deadline) deadlines_.erase(*std::exchange(work.deadline, std::nullopt));
  error.where.stage = "storage";
  error.where.shard = work.piece.name();
  fetch.work_ = nullptr;
  fetch.piece = work.piece;
  fetch.most_bytes = work.most_bytes;
  fetch.version = work.version;
  fetch.buffer = {};
  fetch.bytes = std::unexpected(std::move(error));
  fetch.was_near = false;
  ready_.push_back(&fetch);
  carrier_->transport->give_up(work);
}

void FetchQueue::cancel(Fetch& fetch) {
  if (fetch.work_ == nullptr) return;
  detach(*static_cast<Work*>(fetch.work_), {ErrorCode::kCancelled, "the read was cancelled", {}, 0});
}

void FetchQueue::expire() {
  if (deadlines_.empty()) return;
  const auto now = Clock::now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Work& work = *deadlines_.begin()->second;
    const auto given = std::chrono::duration_cast<std::chrono::milliseconds>(work.fetch->deadline - work.started);
    const auto ms = std::max<std::chrono::milliseconds::rep>(given.count(), 0);
    detach(work, storage_error("not read within " + std::to_string(ms) + " ms", ETIMEDOUT).error());
  }
}

Fetch* FetchQueue::give_back(Work& work) {
  Fetch* const fetch = std::exchange(work.fetch, nullptr);
  if (fetch != nullptr) {
    if (work.deadline) deadlines_.erase(*std::exchange(work.deadline, std::nullopt));
    fetch->work_ = nullptr;
    std::swap<Read>(*fetch, work);
  }
  static_cast<Read&>(work) = {};  // releases the reader and unneeded memory
  carrier_->free.push_back(&work);
  return fetch;
}

Fetch* FetchQueue::finished(Clock::time_point until) {
  while (true) {
    expire();
    if (!ready_.empty()) {
      Fetch* const fetch = ready_.front();
      ready_.pop_front();
      return fetch;
    }
    const auto next = deadlines_.empty() ? until : std::min(until, deadlines_.begin()->first);
    Read* const read = carrier_->transport->finished(next);
    if (read != nullptr) {
      if (Fetch* const fetch = give_back(static_cast<Work&>(*read))) return fetch;
    } else if (next == until || Clock::now() < next) {
      return nullptr;  // its deadline, or wake()
    }
  }
}

std::unique_ptr<FetchQueue> make_fetch_queue(std::shared_ptr<const Storage> storage, QueueKind kind) {
  auto transport = kind == QueueKind::kBest ? storage->own_transport() : nullptr;
  if (!transport) transport = std::make_unique<ThreadTransport>(std::move(storage));
  return std::make_unique<FetchQueue>(std::move(transport));
}

}  // namespace feedline::storage
