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

// Parses "[name]" and "key = value" lines; a section "profile x" is also found as x.
std::map<std::string, std::string> profile_in(std::string_view file, std::string_view profile);
// Parses "2026-01-02T03:04:05Z", with or without a fraction, to seconds since 1970; nullopt if invalid.
std::optional<std::int64_t> parse_iso_time(std::string_view text);
// The region of the current profile in its files; empty if not set.
std::string profile_value(const std::string& key);

// Returns keys from the first source that has some; without any, no keys, and requests are unsigned. Network requests
// use `remote`'s limits. Returns the error of a source that is configured but fails.
Result<S3Keys> find_keys(const HttpLimits& limits, Client* client);

// Any thread. Caches one set of keys, found on first use and renewed before they expire.
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
  S3Keys keys() const;  // never blocks; returns the keys of the last prepare()

 private:
  Result<void> find_anew() const;

  const Find find_;
  const Now now_;
  mutable ForkMutex finding_;  // one thread searches while the others wait
  mutable ForkMutex mutex_;
  // guarded by mutex_
  mutable std::optional<S3Keys> keys_;
  mutable std::int64_t look_again_ = 0;  // earliest next attempt while the keys are still valid
};

}  // namespace feedline::storage
