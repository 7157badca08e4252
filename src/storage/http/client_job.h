// SPDX-License-Identifier: Apache-2.0
#pragma once

// A transfer as the client has it. The client's thread alone.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "storage/http/client.h"
#include "storage/http/curl_library.h"

namespace feedline::storage {

// A request as curl has it.
struct Client::Attempt {
  Job* job = nullptr;
  CURL* handle = nullptr;
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> words{};
  Clock::time_point begun;
  bool is_refused = false;  // while another one was under way
  bool is_plain = true;     // a GET: its handle has no options that another one would not set anew

  bool is_under_way() const { return handle != nullptr; }
};

struct Client::Job {
  Job(Client& of, Transfer& what, Waiting& who) : client(of), transfer(what), waiting(who) {
    for (Attempt& attempt : attempts) attempt.job = this;
  }
  Client& client;
  Transfer& transfer;
  Waiting& waiting;
  Clock::time_point due;    // not before
  bool is_blocked = false;  // it was due, and there was no room
  bool is_held_back = false;
  std::size_t parts_told = 0;
  std::uint64_t received_before = 0;  // this request
  std::string host;
  std::array<Attempt, 2> attempts;  // the request, and a second one where it is late
  Attempt* answering = nullptr;     // the one whose answer the transfer gets
  std::optional<Call> call;         // of a transfer that may be hedged
  std::optional<Clock::time_point> hedge_at;
  // of the time in which bytes must come
  Clock::time_point window_began;
  std::uint64_t window_bytes = 0;  // received before it

  Attempt& other(const Attempt& attempt) { return &attempt == &attempts[0] ? attempts[1] : attempts[0]; }
  // Whoever is alone decides, and so does the first that has what was asked for.
  bool may_answer(const Attempt& attempt, int status) {
    const Attempt& second = other(attempt);
    return !second.is_under_way() || second.is_refused || status / 100 == 2;
  }
};

}  // namespace feedline::storage
