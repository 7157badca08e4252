// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread for all remote reads of the process, which uses curl's multi interface: it reuses connections, starts
// requests, aborts stalled ones, and delays retries. The cost per read is small: sockets are polled together
// (socket_watch.h), handles retain the options that all requests share, and the thread is woken only if it sleeps.
//
// If hedging is enabled for a transfer whose request takes longer than 99 % of the requests to its host, the request is
// sent again. The first 200 or 206 response is used, and the other request is cancelled; a failure is ignored while the
// other request may still succeed.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "feedline/error.h"
#include "storage/http/easy_handles.h"
#include "storage/http/host_pace.h"
#include "storage/http/http_limits.h"
#include "storage/http/request_counts.h"
#include "storage/http/socket_watch.h"
#include "storage/http/transfer.h"

namespace feedline::storage {

// The state of a transfer: how it ended if it has finished, otherwise the number of parts that are complete.
struct Notice {
  Transfer* transfer = nullptr;
  std::size_t parts_done = 0;
  std::optional<Transfer::Next> how;
};

// Receives events on the client's thread, and must not block or throw.
class Waiting {
 public:
  virtual ~Waiting() = default;
  // Receives all events since the last call, in order, so that one call wakes the waiting thread for many transfers.
  // The object may be destroyed once all its transfers have been reported as finished.
  virtual void notify(std::span<const Notice> notices) = 0;
};

// Any thread.
class Client {
 public:
  // Returns the client of the process, which the first call creates. After fork(), a child creates its own client and
  // does not use its parent's. kStorage: libcurl is missing. The client's thread ends with the process.
  static Result<Client*> here();
  // Returns the client of the process if it exists, else nullptr.
  static Client* made();
  static Result<std::unique_ptr<Client>> make(const HttpLimits& limits);
  ~Client();

  // Never blocks. The client owns the transfer until `waiting` receives kDone, or kAfterRenewal, after which the
  // transfer may be started again. Requires: both objects exist until then.
  void start(Transfer& transfer, Waiting& waiting);
  // Cancels the transfer; `waiting` is notified soon afterwards. Has no effect if the transfer has finished.
  void give_up(Transfer& transfer);

  // Statistics so far.
  const RequestTally& tally() const { return tally_; }

 private:
  struct Job;
  struct Attempt;
  using Clock = std::chrono::steady_clock;
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* attempt);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* attempt);

  Client(const CurlLibrary& curl, const HttpLimits& limits);
  void ask(Transfer* transfer, Waiting* waiting);
  void stop();
  void run();
  void lose(const Error& error);
  void take_asked();
  void begin_waiting();
  void begin(Job& job);
  bool may_begin(Job& job);
  void measure(const Job& job);
  bool set_up(Attempt& attempt, const Call& call);
  void begin_hedges();
  bool may_hedge(const Job& job);
  void count_answer(const Job& job);
  void end_finished();
  void end_stalled();
  std::uint64_t sent_bytes(const Job& job) const;
  void end(Job& job, std::string_view trouble, bool is_worth_another_try);
  void end_given_up(Transfer* transfer);
  void close(Job& job);
  void close(Attempt& attempt);
  void conclude(Job& job, Transfer::Next next);
  void note(Waiting& waiting, const Notice& notice);
  void tell();
  int wait_ms() const;

  const CurlLibrary& curl_;
  const HttpLimits limits_;
  void* multi_ = nullptr;
  std::unique_ptr<SocketWatch> watch_;
  RequestTally tally_;
  std::mutex mutex_;
  // guarded by mutex_
  std::vector<std::pair<Transfer*, Waiting*>> asked_;  // in order of arrival; nullptr: cancelled
  bool stopping_ = false;
  bool sleeping_ = false;      // the thread sees new entries only after it is woken
  std::optional<Error> lost_;  // why the client is shut down
  // used only by the thread
  std::unordered_map<Transfer*, std::unique_ptr<Job>> jobs_;
  std::deque<Job*> waiting_;  // until they are due, or others end
  std::vector<Job*> under_way_;
  std::map<std::string, std::size_t, std::less<>> of_host_;  // requests in flight per host
  std::map<std::string, RequestPace> paces_;                 // per host
  std::map<std::string, HedgePolicy> hedges_;                // per host
  EasyHandles handles_;
  std::vector<std::pair<Waiting*, Notice>> notices_;  // not reported yet
  Clock::time_point noted_;                           // time of the first one
  bool has_room_ = false;                             // for jobs in waiting_ that were blocked
  Clock::time_point looked_for_stalls_;
  std::optional<base::Thread> thread_;
};

// Starts the transfer and waits for it; renews credentials if necessary.
Result<std::span<const std::byte>> carry_out(Transfer& transfer);
Result<std::span<const std::byte>> carry_out(Client& client, Transfer& transfer);

}  // namespace feedline::storage
