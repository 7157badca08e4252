// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "storage/http/range_plan.h"
#include "storage/http/remote_storage.h"
#include "storage/transport.h"

namespace feedline::storage {

// Runs many concurrent remote reads on the client's thread, without a separate thread. Ranges that are started before
// the next call to finished() are merged into requests (range_plan.h):
//
//   start() ... ─► waiting_ ─► finished(): plan ─► requests ─► parts of reads ─► a read whose parts are all complete
class HttpTransport final : public Transport, private Waiting {
 public:
  explicit HttpTransport(Remote remote);
  ~HttpTransport() override;

  std::string_view name() const override { return "http"; }
  // Blocks only if the process has no credentials yet and must obtain them.
  void start(Read& read) override;
  Read* finished(Clock::time_point until) override;
  void give_up(Read& read) override;
  void wake() override;

 private:
  struct Asked;
  struct Request;
  void notify(std::span<const Notice> notices) override;
  Result<Client*> client() const;
  Result<std::span<std::byte>> prepare(Read& read);
  const std::string& host_of(const std::string& object);
  RangeLimits limits_of(const std::string& host, bool joins) const;
  void start_waiting();
  void start_request(const RangeRequest& planned, const std::vector<Asked*>& reads);
  void begin(std::unique_ptr<Request> request);
  void take(const Notice& notice);
  void give_parts(Request& request, std::size_t until);
  void give_whole(Request& request);
  void finish(Read& read) { done_.push_back(&read); }

  const Remote remote_;
  // used only by the reading thread
  std::unordered_map<Read*, std::unique_ptr<Asked>> asked_;  // reads in waiting_ and requests_
  std::vector<Asked*> waiting_;                              // ranges without a request, in order of arrival
  std::unordered_map<Transfer*, std::unique_ptr<Request>> requests_;
  std::unordered_map<std::string, std::string> hosts_;  // of objects read by ranges
  std::deque<Read*> done_;
  std::deque<Notice> came_;  // taken from events_ together, with one lock for all
  std::mutex mutex_;
  std::condition_variable arrived_;
  // guarded by mutex_
  std::deque<Notice> events_;
  bool woken_ = false;
};

}  // namespace feedline::storage
