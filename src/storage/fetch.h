// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asynchronous reads with deadlines and cancellation: the basis of prefetching, and the path of every non-blocking
// read.
//
//   Fetch ──start()──► FetchQueue ──► Transport    io_uring, threads, a backend's own
//     ▲                    │
//     └────finished()──────┘    done, timed out, or cancelled: the owner gets it back at once
//
// A cancelled or timed-out read continues below, into memory that the queue has taken over: a kernel write cannot be
// stopped. The owner gets an empty buffer instead.

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

// One read. The owner must not move or modify a Fetch until the queue reports that it has finished; until then the
// members for the request are unspecified.
struct Fetch : Read {
  // kStorage with ETIMEDOUT, naming the object and the time, if it has not finished by then.
  Transport::Clock::time_point deadline = Transport::Clock::time_point::max();

 private:
  friend class FetchQueue;
  void* work_ = nullptr;  // while in flight
};

// Runs many reads at once. Not thread-safe, except wake(). The destructor cancels reads in flight without waiting for
// them.
class FetchQueue {
 public:
  using Clock = Transport::Clock;
  explicit FetchQueue(std::unique_ptr<Transport> transport);
  ~FetchQueue();
  FetchQueue(const FetchQueue&) = delete;
  FetchQueue& operator=(const FetchQueue&) = delete;

  std::string_view name() const;
  void start(Fetch& fetch);  // never blocks; the next finished() may start the read
  // finished() returns it with kCancelled at once. No effect if it is not in flight or has already finished.
  void cancel(Fetch& fetch);
  // Returns a finished fetch, in any order. Waits until `until` or wake(), and then returns nullptr.
  Fetch* finished(Clock::time_point until);
  // Any thread: ends the current wait of finished(), or that of its next call.
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
