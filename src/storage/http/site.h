// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps an object's name to requests: plain HTTP, or S3 with its signatures.

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
  // The body to send, if any; must outlive the request.
  std::optional<std::span<const std::byte>> body = {};
  std::uint64_t keys = 0;  // generation of its keys: see renew()
  bool follows = false;    // follows redirects, to which no user name, password or `headers` are sent
};

// How to handle an error response.
enum class Refused : std::uint8_t {
  kForGood,
  kForNow,          // retry
  kForCredentials,  // retry after renew()
};

// Any thread.
class Site {
 public:
  virtual ~Site() = default;
  // Builds the request for `object`, again for each attempt. Never blocks.
  virtual Result<Call> call(const std::string& object, std::string_view query) const = 0;
  // The same for the whole object and its checksums, if enabled; "HEAD": for checksums only.
  virtual Result<Call> call_with_sums(const std::string& object, const std::string& method) const;
  // Whether it may reject HEAD for an object that GET returns, as URLs signed for GET and some servers do.
  virtual bool may_refuse_heads() const { return false; }
  // Called before the first attempt on the requesting thread; may block.
  virtual Result<void> prepare() const { return {}; }
  // Called after kForCredentials for a Call with these keys; may block. Returns an error if there are no other keys.
  virtual Result<void> renew(std::uint64_t /*keys*/) const { return {}; }
  // After a status other than 200 and 206: returns whether the object is elsewhere and call() uses the new location.
  virtual bool has_moved(const std::string& /*object*/, const ResponseHead& /*head*/, std::string_view /*body*/) const {
    return false;
  }
  // Classifies a response with a status other than 200 and 206; body: its beginning.
  virtual Refused refused(const ResponseHead& head, std::string_view body) const;
  // Whether a response to an upload with status 200 is an error; body: the whole body.
  virtual bool denies(std::string_view /*body*/) const { return false; }
  // The operation on the object, for errors: "write part 3"; empty for a read.
  virtual std::string deed() const { return {}; }
  // The details besides the status, for users; empty: none.
  virtual std::string reason(const ResponseHead& /*head*/, std::string_view /*body*/) const { return {}; }
};

// http:// and https://. Objects are URLs without_secrets().
class HttpSite final : public Site {
 public:
  Result<Call> call(const std::string& object, std::string_view query) const override;
  bool may_refuse_heads() const override { return true; }
};

}  // namespace feedline::storage
