// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "storage/http/remote_storage.h"
#include "storage/transport.h"

namespace feedline::storage {

// Many remote reads at once, without a thread of their own: the client's thread carries them out.
class HttpTransport final : public Transport, private Waiting {
 public:
  explicit HttpTransport(Remote remote);
  ~HttpTransport() override;

  std::string_view name() const override { return "http"; }
  // Waits for credentials alone, where there are none yet.
  void start(Read& read) override;
  Read* finished(Clock::time_point until) override;
  void give_up(Read& read) override;
  void wake() override;

 private:
  struct Running;
  void finished(Transfer& transfer, Transfer::Next how) override;
  Result<Client*> client() const;
  Result<void> prepare(Running& running);
  void finish(Read& read);
  Read* give_back(Running& running);

  const Remote remote_;
  std::unordered_map<Transfer*, std::unique_ptr<Running>> running_;  // of the thread that reads
  std::mutex mutex_;
  std::condition_variable arrived_;
  // guarded by mutex_
  std::deque<std::pair<Transfer*, Transfer::Next>> finished_;
  std::deque<Read*> without_request_;  // of the thread that reads
  bool woken_ = false;
};

}  // namespace feedline::storage
