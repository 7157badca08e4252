// SPDX-License-Identifier: Apache-2.0
#pragma once

// Looks for keys in the order of AWS's own tools:
//
//   1  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2  AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN, at STS
//   3  the profile AWS_PROFILE of ~/.aws/credentials and ~/.aws/config: keys, or a web identity
//   4  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, or ..._FULL_URI: ECS, EKS
//   5  the instance's metadata, version 2, unless AWS_EC2_METADATA_DISABLED
//
// Keys never appear in errors or in stored data.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "storage/http/remote_storage.h"
#include "storage/s3/signature.h"

namespace feedline::storage {

// "[name]" and "key = value" lines; of sections "profile x" too: keys of x.
std::map<std::string, std::string> profile_in(std::string_view file, std::string_view profile);
// Seconds since 1970 of "2026-01-02T03:04:05Z", with or without a fraction; nullopt: it is none.
std::optional<std::int64_t> parse_iso_time(std::string_view text);
// The region of the current profile in its files; empty if not set.
std::string profile_value(const std::string& key);

// Returns keys from the first source that has some; without any, no keys, and requests are unsigned. Network requests
// use `remote`'s limits. Returns the error of a source that is configured but fails.
Result<S3Keys> find_keys(const HttpLimits& limits, Client* client);

// Any thread. One set of keys, found when they are first wanted and again before they expire.
class KeyRing {
 public:
  using Find = std::function<Result<S3Keys>()>;
  using Now = std::function<std::int64_t()>;
  KeyRing(Find find, Now now) : find_(std::move(find)), now_(std::move(now)) {}

  // May block on the key source. If that fails, keys that are still valid are returned.
  Result<void> prepare() const;
  // Called when keys of this generation were rejected: returns other keys, or an error. Sends no request if there are
  // newer keys already, as after several concurrent rejections.
  Result<void> renew(std::uint64_t refused) const;
  S3Keys keys() const;  // never waits; those of the last prepare()

 private:
  Result<void> find_anew() const;

  const Find find_;
  const Now now_;
  mutable ForkMutex finding_;  // one thread looks, the others wait for it
  mutable ForkMutex mutex_;
  // guarded by mutex_
  mutable std::optional<S3Keys> keys_;
  mutable std::int64_t look_again_ = 0;  // not before, for keys that are valid still
};

}  // namespace feedline::storage
