// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread for all remote reads of the process, with curl's multi interface: it reuses connections, starts requests,
// aborts stalled ones, and delays retries. Overhead per read is small: sockets are polled together (socket_watch.h),
// handles retain the options common to all requests, and the thread is woken only if it sleeps.
//
// If hedging is enabled for a transfer and its request is slower than 99 % of its host's, the same request is sent
// again. The first 200 or 206 response wins, and the other request is cancelled; failures are ignored while the other
// may still succeed.

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

// A transfer's state: finished (with the result), or the number of completed parts with more to come.
struct Notice {
  Transfer* transfer = nullptr;
  std::size_t parts_done = 0;
  std::optional<Transfer::Next> how;
};

// Receives events on the client's thread. Must not block or throw.
class Waiting {
 public:
  virtual ~Waiting() = default;
  // All events since the last call, in order: one call wakes the waiting thread for many transfers. It may be destroyed
  // once all its transfers are reported finished.
  virtual void told(std::span<const Notice> notices) = 0;
};

// Any thread.
class Client {
 public:
  // Returns the process's client, created at the first call; a child after fork() gets its own and leaves its parent's
  // alone. kStorage: libcurl is missing. Its thread ends with the process.
  static Result<Client*> here();
  // Returns the process's client, if it exists.
  static Client* made();
  static Result<std::unique_ptr<Client>> make(const HttpLimits& limits);
  ~Client();

  // Never blocks. The client owns the transfer until `waiting` receives kDone, or kAfterRenewal, after which it may be
  // started again. Requires: both outlive that.
  void start(Transfer& transfer, Waiting& waiting);
  // Cancels the transfer: `waiting` is notified soon. No effect if it is finished.
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

// Starts the transfer and waits for it, renewing credentials if necessary.
Result<std::span<const std::byte>> carry_out(Transfer& transfer);
Result<std::span<const std::byte>> carry_out(Client& client, Transfer& transfer);

}  // namespace feedline::storage
