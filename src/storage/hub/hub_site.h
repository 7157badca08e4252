// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests to the Hub and to the hosts that serve its large files.
//
//   hf://datasets/ID@COMMIT/path ─► GET endpoint/datasets/ID/resolve/COMMIT/path ─┬─► 200, 206: a small file
//                                          (with the token)                       └─► 302: a signed URL, used for all
//                                                                                     requests until it expires
//
// The token is sent only to the endpoint's own origin. A signed URL is requested again shortly before it expires, and
// once after its host refuses it with 401 or 403; if the next one is refused as well, that is an error.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/fork_mutex.h"
#include "storage/http/site.h"
#include "storage/hub/hub_settings.h"

namespace feedline::storage {

class HubSite final : public Site {
 public:
  using Clock = std::chrono::steady_clock;
  explicit HubSite(HubSettings settings);

  // object: a name with a commit. query: the path and query of an API request about it, such as "/api/datasets/..."; or
  // empty for the object itself.
  Result<Call> call(const std::string& object, std::string_view query) const override;
  bool may_refuse_heads() const override { return true; }
  bool names_versions() const override { return true; }
  // Uses the target of a redirect for the object from now on.
  bool has_moved(const std::string& object, const ResponseHead& head, std::string_view body) const override;
  Refused refused(const ResponseHead& head, std::string_view body, std::uint64_t keys) const override;
  // Drops the signed URL with this generation.
  Result<void> renew(std::uint64_t keys) const override;
  std::string reason(const ResponseHead& head, std::string_view body) const override;

  // Announces that this object is served by a signed URL, so that concurrent reads wait for one redirect.
  void expect_redirect(const std::string& object) const;
  // Returns the path and query to request for the URL of a next page. Mirrors may return URLs of the original host; the
  // request is sent to the endpoint anyway, because only the endpoint may receive the token.
  static std::string target_of_page(std::string_view url);
  const HubSettings& settings() const { return settings_; }

 private:
  struct Location {
    std::string url;                   // empty: not known yet
    bool is_of_endpoint = false;       // the same origin, which may receive the token
    std::int64_t renew_at = 0;         // seconds since 1970; 0: until it is refused
    std::uint64_t generation = 0;      // never 0 if there is a URL
    std::weak_ptr<const void> asking;  // exists while a request for a redirect is in flight
  };
  Call call_endpoint(const std::string& target) const;
  std::string target_of(const std::string& object) const;

  const HubSettings settings_;
  const std::string origin_;  // scheme, host and port of the endpoint
  mutable ForkMutex mutex_;
  // guarded by mutex_
  mutable std::unordered_map<std::string, Location> locations_;
  mutable std::uint64_t generation_ = 0;
  mutable Clock::time_point closed_until_;  // the endpoint has asked to wait until then
};

}  // namespace feedline::storage
