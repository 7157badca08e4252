// SPDX-License-Identifier: Apache-2.0
#pragma once

// Waits for the sockets of a curl multi handle with epoll, and lets curl process only those that are ready.
// curl_multi_perform() would query the kernel about every transfer in each call, which would take most of the time for
// small transfers.

#include <chrono>
#include <memory>
#include <optional>

#include "feedline/error.h"
#include "storage/file_descriptor.h"
#include "storage/http/curl_library.h"

namespace feedline::storage {

// Used by one thread, except for wake(). Requires: the handle is destroyed before this object, and nothing else waits
// for its sockets.
class SocketWatch {
 public:
  static Result<std::unique_ptr<SocketWatch>> make(const CurlLibrary& curl, CURLM* multi);

  // Waits for a ready socket, curl's timer, wake(), or at most `most_ms` milliseconds.
  void wait(int most_ms);
  // May be called by any thread: ends the current wait, or the next one.
  void wake();

 private:
  using Clock = std::chrono::steady_clock;
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* watch, void* known);
  static int on_timer(CURLM* multi, long timeout_ms, void* watch);

  SocketWatch(const CurlLibrary& curl, CURLM* multi, FileDescriptor poll, FileDescriptor woken);
  void act(int socket, int what);
  int until_due_ms(int most_ms) const;

  const CurlLibrary& curl_;
  CURLM* const multi_;
  const FileDescriptor poll_, woken_;
  std::optional<Clock::time_point> due_;  // when curl must be called in any case
};

}  // namespace feedline::storage
