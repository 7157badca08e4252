// SPDX-License-Identifier: Apache-2.0
#pragma once

// The client's state for a transfer, which only the client's thread uses.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "storage/http/client.h"
#include "storage/http/curl_library.h"

namespace feedline::storage {

// A request with its curl handle.
struct Client::Attempt {
  Job* job = nullptr;
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> words{};
  Clock::time_point begun;
  bool is_refused = false;  // while another request was in flight
  bool is_plain = true;     // a GET: every option of its handle is overwritten by the next request

  bool is_under_way() const { return handle != nullptr; }
};

struct Client::Job {
  Job(Client& of, Transfer& what, Waiting& who) : client(of), transfer(what), waiting(who) {
    for (Attempt& attempt : attempts) attempt.job = this;
  }
  Client& client;
  Transfer& transfer;
  Waiting& waiting;
  Clock::time_point due;    // earliest start
  bool is_blocked = false;  // due, but there was no room
  bool is_held_back = false;
  std::size_t parts_told = 0;
  std::uint64_t received_before = 0;  // before this request
  std::string host;
  std::array<Attempt, 2> attempts;  // the request and its hedge
  Attempt* answering = nullptr;     // the one whose response the transfer uses
  std::optional<Call> call;         // for a transfer that may be hedged
  std::shared_ptr<const void> ticket;
  std::optional<Clock::time_point> hedge_at;
  // current stall interval
  Clock::time_point window_began;
  std::uint64_t window_bytes = 0;  // bytes received before it

  Attempt& other(const Attempt& attempt) { return &attempt == &attempts[0] ? attempts[1] : attempts[0]; }
  // The only remaining request is used, or the first one that has a valid response.
  bool may_answer(const Attempt& attempt, int status) {
    const Attempt& second = other(attempt);
    return !second.is_under_way() || second.is_refused || status / 100 == 2;
  }
};

}  // namespace feedline::storage
