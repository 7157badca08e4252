// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps an object's name to requests, for plain HTTP or signed S3 requests.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
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
  // The request body, if there is one; it must outlive the request.
  std::optional<std::span<const std::byte>> body = {};
  std::uint64_t keys = 0;  // generation of its keys: see renew()
  bool follows = false;    // follows redirects; other hosts receive no user name, password or `Authorization`
  std::chrono::milliseconds later{0};  // not to be sent before; then call() is called again
  std::shared_ptr<const void> ticket;  // released when the request ends, is cancelled, or is not sent
};

// How to react to an error response.
enum class Refused : std::uint8_t {
  kForGood,
  kForNow,          // retry
  kForCredentials,  // retry after renew()
};

// Any thread.
class Site {
 public:
  virtual ~Site() = default;
  // Builds the request for `object`; called for each attempt. Never blocks.
  virtual Result<Call> call(const std::string& object, std::string_view query) const = 0;
  // Like call(), for the whole object with its checksums if they are enabled. "HEAD" requests only checksums.
  virtual Result<Call> call_with_sums(const std::string& object, const std::string& method) const;
  // Returns whether the server may reject HEAD for an object that GET returns; this applies to URLs signed for GET, and
  // to some servers.
  virtual bool may_refuse_heads() const { return false; }
  // Called on the requesting thread before the first attempt; may block.
  virtual Result<void> prepare() const { return {}; }
  // Called after kForCredentials for a Call with these keys; may block. Returns an error if no other keys are
  // available.
  virtual Result<void> renew(std::uint64_t /*keys*/) const { return {}; }
  // Returns whether an object's name determines its version. If so, the ETags of responses are ignored, because they
  // are those of a cache, and only the object's size is compared.
  virtual bool names_versions() const { return false; }
  // Called after a status other than 200 and 206: returns whether the object has moved and call() now uses the new
  // location.
  virtual bool has_moved(const std::string& /*object*/, const ResponseHead& /*head*/, std::string_view /*body*/) const {
    return false;
  }
  // Classifies a response with a status other than 200 and 206. body: the first bytes of its body. keys: of the Call.
  virtual Refused refused(const ResponseHead& head, std::string_view body, std::uint64_t keys) const;
  // Returns whether a response with status 200 to an upload reports an error. body: the whole body.
  virtual bool denies(std::string_view /*body*/) const { return false; }
  // Returns the operation on the object, for errors, such as "write part 3"; empty for a read.
  virtual std::string deed() const { return {}; }
  // Returns details for users in addition to the status; empty if there are none.
  virtual std::string reason(const ResponseHead& /*head*/, std::string_view /*body*/) const { return {}; }
};

// http:// and https://. Object names are the URLs that without_secrets() returns.
class HttpSite final : public Site {
 public:
  Result<Call> call(const std::string& object, std::string_view query) const override;
  bool may_refuse_heads() const override { return true; }
};

}  // namespace feedline::storage
