// SPDX-License-Identifier: Apache-2.0
// The process's client, and waiting for its transfers.
#include <pthread.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "storage/http/client.h"

namespace feedline::storage {
namespace {

// The process's client. Never destroyed, because threads may be waiting for it when the process exits.
struct Here {
  std::mutex mutex;
  Client* client = nullptr;
};

Here& process() {
  static Here* const here = [] {
    static Here* const made = new Here;
    // another thread of the parent may hold the mutex, and the child does not have the client's thread
    ::pthread_atfork(nullptr, nullptr, [] { new (made) Here; });
    return made;
  }();
  return *here;
}

// A thread that waits for one transfer.
class Arrival final : public Waiting {
 public:
  void notify(std::span<const Notice> notices) override {
    const std::lock_guard lock(mutex_);
    how_ = notices.back().how;  // of its one transfer, which has one part
    finished_.notify_one();     // under the lock: the waiting thread destroys this
  }
  Transfer::Next wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return how_.has_value(); });
    return *std::exchange(how_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<Transfer::Next> how_;
};

}  // namespace

Result<Client*> Client::here() {
  Here& here = process();
  const std::lock_guard lock(here.mutex);
  if (here.client == nullptr) {
    FEEDLINE_TRY(auto made, make(http_limits()));
    here.client = made.release();
    // before the libraries that it uses clean up
    std::atexit([] {
      if (Client* const client = process().client) client->stop();
    });
  }
  return here.client;
}

Client* Client::made() {
  Here& here = process();
  const std::lock_guard lock(here.mutex);
  return here.client;
}

Result<std::span<const std::byte>> carry_out(Client& client, Transfer& transfer) {
  FEEDLINE_CHECK_OK(transfer.site().prepare());
  Arrival arrival;
  while (true) {
    client.start(transfer, arrival);
    if (arrival.wait() == Transfer::Next::kDone) return transfer.result();
    FEEDLINE_CHECK_OK(transfer.site().renew(transfer.keys()));
  }
}

Result<std::span<const std::byte>> carry_out(Transfer& transfer) {
  FEEDLINE_TRY(Client* const client, Client::here());
  return carry_out(*client, transfer);
}

}  // namespace feedline::storage
