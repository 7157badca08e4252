// SPDX-License-Identifier: Apache-2.0
#pragma once

// Waits for the sockets of a curl multi handle by epoll, and has curl go on with those that something has come for.
// With curl_multi_perform() each look asks the kernel about every transfer under way, and the fewer bytes a transfer
// has the more of its time that is.

#include <chrono>
#include <memory>
#include <optional>

#include "feedline/error.h"
#include "storage/file_descriptor.h"
#include "storage/http/curl_library.h"

namespace feedline::storage {

// For one thread, but for wake(). Requires: the handle goes before it does, and has no other who waits for it.
class SocketWatch {
 public:
  static Result<std::unique_ptr<SocketWatch>> make(const CurlLibrary& curl, CURLM* multi);

  // Until something has come, curl's own time is up, wake(), or `most_ms`.
  void wait(int most_ms);
  // Any thread: ends the wait, or the next one.
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
  std::optional<Clock::time_point> due_;  // when curl wants to be called, whatever comes
};

}  // namespace feedline::storage
