// SPDX-License-Identifier: Apache-2.0
#pragma once

// Waits for the sockets of a curl multi handle with epoll, and lets curl process only the ready ones.
// curl_multi_perform() would query the kernel about every transfer at each call, which dominates for small transfers.

#include <chrono>
#include <memory>
#include <optional>

#include "feedline/error.h"
#include "storage/file_descriptor.h"
#include "storage/http/curl_library.h"

namespace feedline::storage {

// For one thread, except wake(). Requires: the handle is destroyed first, and nothing else waits on it.
class SocketWatch {
 public:
  static Result<std::unique_ptr<SocketWatch>> make(const CurlLibrary& curl, CURLM* multi);

  // Waits until a socket is ready, curl's timer expires, wake(), or `most_ms`.
  void wait(int most_ms);
  // Any thread: ends the current wait, or the next one.
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
