// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asynchronous reads with deadlines and cancellation, on which prefetching and all non-blocking reads are based.
//
//   Fetch ──start()──► FetchQueue ──► Transport    io_uring, threads, a backend's own
//     ▲                    │
//     └────finished()──────┘    done, timed out, or cancelled: the owner gets it back at once
//
// A cancelled or timed-out read continues in the transport, because the kernel's write cannot be stopped. The queue
// then owns the memory, and the owner receives an empty buffer.

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "storage/transport.h"

namespace feedline::storage {

class Storage;
class FetchQueue;

// One read. The owner must not move or modify a Fetch until the queue reports that it has finished; until then, the
// values of the request's members are unspecified.
struct Fetch : Read {
  // A read that has not finished by the deadline returns kStorage with ETIMEDOUT, the object's name and the time.
  Transport::Clock::time_point deadline = Transport::Clock::time_point::max();

 private:
  friend class FetchQueue;
  void* work_ = nullptr;  // while in flight
};

// Runs many reads concurrently. Not thread-safe, except for wake(). The destructor cancels reads in flight without
// waiting for them.
class FetchQueue {
 public:
  using Clock = Transport::Clock;
  explicit FetchQueue(std::unique_ptr<Transport> transport);
  ~FetchQueue();
  FetchQueue(const FetchQueue&) = delete;
  FetchQueue& operator=(const FetchQueue&) = delete;

  std::string_view name() const;
  void start(Fetch& fetch);  // never blocks; the next finished() may start the read
  // finished() immediately returns the fetch with kCancelled. Has no effect if the fetch is not in flight or has
  // already finished.
  void cancel(Fetch& fetch);
  // Returns any fetch that has finished. Waits until `until` or wake(); then returns nullptr.
  Fetch* finished(Clock::time_point until);
  // May be called by any thread: ends the current wait of finished(), or the wait of its next call.
  void wake();

 private:
  struct Work;
  struct Carrier;
  using Deadlines = std::multimap<Clock::time_point, Work*>;
  void detach(Work& work, Error error);
  void expire();
  Fetch* give_back(Work& work);

  std::unique_ptr<Carrier> carrier_;  // the transport and all memory that it may write to
  std::deque<Fetch*> ready_;          // cancelled or expired
  Deadlines deadlines_;               // of fetches with a deadline
};

enum class QueueKind : std::uint8_t {
  kBest,     // the storage's own transport, if it has one
  kThreads,  // blocking threads, one read each
};

std::unique_ptr<FetchQueue> make_fetch_queue(std::shared_ptr<const Storage> storage, QueueKind kind);

}  // namespace feedline::storage
