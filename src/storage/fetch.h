// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads that are under way while their caller does something else, with a deadline, and cancelled when nobody wants
// them any more: what reading ahead is made of, and the way to every byte that nobody waits for.
//
//   Fetch ──start()──► FetchQueue ──► Transport    io_uring, threads, a storage's own
//     ▲                    │
//     └────finished()──────┘    done, too late, or cancelled: its owner has it back at once
//
// A read that is cancelled or too late goes on below, into memory that the queue has taken over: a kernel that is
// writing cannot be told to stop. The owner gets an empty buffer for it.

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

// One read. Its owner keeps it where it is, and off its hands, until the queue says that it is finished; meanwhile it
// says nothing of what it asks for.
struct Fetch : Read {
  // kStorage with ETIMEDOUT that names the object and the time, where it is not finished by then.
  Transport::Clock::time_point deadline = Transport::Clock::time_point::max();

 private:
  friend class FetchQueue;
  void* work_ = nullptr;  // while it is under way
};

// Many reads at once. For one thread, but for wake(). What is under way when it is destroyed is cancelled, and waited
// for by nobody.
class FetchQueue {
 public:
  using Clock = Transport::Clock;
  explicit FetchQueue(std::unique_ptr<Transport> transport);
  ~FetchQueue();
  FetchQueue(const FetchQueue&) = delete;
  FetchQueue& operator=(const FetchQueue&) = delete;

  std::string_view name() const;
  void start(Fetch& fetch);  // never waits for the read, which may be begun by the next finished()
  // kCancelled is what finished() will say of it, at once; nothing happens to one that is not under way, or is finished
  // already, which stays as it is.
  void cancel(Fetch& fetch);
  // A fetch that is finished, in any order. Waits for one until `until`, or until wake(): then nullptr.
  Fetch* finished(Clock::time_point until);
  // Any thread: ends the wait of finished(), or of its next call.
  void wake();

 private:
  struct Work;
  struct Carrier;
  using Deadlines = std::multimap<Clock::time_point, Work*>;
  void detach(Work& work, Error error);
  void expire();
  Fetch* give_back(Work& work);

  std::unique_ptr<Carrier> carrier_;  // the transport, and all that it may write to
  std::deque<Fetch*> ready_;          // cancelled or too late
  Deadlines deadlines_;               // of those that have one
};

enum class QueueKind : std::uint8_t {
  kBest,     // the storage's own where it has one
  kThreads,  // threads that wait, one read each
};

std::unique_ptr<FetchQueue> make_fetch_queue(std::shared_ptr<const Storage> storage, QueueKind kind);

}  // namespace feedline::storage
