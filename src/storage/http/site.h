// SPDX-License-Identifier: Apache-2.0
#pragma once

// What makes a request of an object's name: plain HTTP, or S3 with its signatures.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/http/response_head.h"

namespace feedline::storage {

struct Call {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string method = "GET";
  // What is sent, where something is: it has to outlive the request.
  std::optional<std::span<const std::byte>> body = {};
  std::uint64_t keys = 0;  // generation of the keys that it has: see renew()
  bool follows = false;    // redirects; what they lead to gets no user name, no password and none of `headers`
};

// What a refusal means.
enum class Refused : std::uint8_t {
  kForGood,
  kForNow,          // worth another try
  kForCredentials,  // worth another try after renew()
};

// Any thread.
class Site {
 public:
  virtual ~Site() = default;
  // The request for `object`, made anew for each try. Never waits.
  virtual Result<Call> call(const std::string& object, std::string_view query) const = 0;
  // The same for all of an object and its checksums, where they are to be asked for; "HEAD": for these alone.
  virtual Result<Call> call_with_sums(const std::string& object, const std::string& method) const;
  // May it refuse HEAD of what it gives? A URL that is signed for GET does, and so do some servers.
  virtual bool may_refuse_heads() const { return false; }
  // Before the first try, by the thread that asks; may wait.
  virtual Result<void> prepare() const { return {}; }
  // After kForCredentials of a Call with these keys; may wait. The error, where there are no others.
  virtual Result<void> renew(std::uint64_t /*keys*/) const { return {}; }
  // After any other answer than 200 and 206: is the object elsewhere, and does call() know where from now on?
  virtual bool has_moved(const std::string& /*object*/, const ResponseHead& /*head*/, std::string_view /*body*/) const {
    return false;
  }
  // What an answer of another status than 200 and 206 means; body: its beginning.
  virtual Refused refused(const ResponseHead& head, std::string_view body) const;
  // Is an answer of status 200 a refusal all the same? Of what was sent; body: all of it.
  virtual bool denies(std::string_view /*body*/) const { return false; }
  // What is done to the object, for errors: "write part 3"; empty: it is read.
  virtual std::string deed() const { return {}; }
  // What it says besides its status, for people; empty: nothing.
  virtual std::string reason(const ResponseHead& /*head*/, std::string_view /*body*/) const { return {}; }
};

// http:// and https://. Objects are URLs without_secrets().
class HttpSite final : public Site {
 public:
  Result<Call> call(const std::string& object, std::string_view query) const override;
  bool may_refuse_heads() const override { return true; }
};

}  // namespace feedline::storage
