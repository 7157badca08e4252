// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keys and tokens for s3:// and gs://, in order of precedence:
//
//   s3  1  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//       2  the keys of the profile AWS_PROFILE in ~/.aws/credentials and ~/.aws/config
//   gs  1  GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY: an HMAC key
//       2  CLOUDSDK_AUTH_ACCESS_TOKEN: a token, used as it is
//
// All other sources require requests to a service; the function passed to find_credentials_by() reads them. A web
// identity, and a profile with a role, have precedence over the profile's keys, as in AWS's tools.
//
// Keys never appear in errors or in stored data.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "storage/s3/signature.h"

namespace feedline::storage {

// Returns the value of an environment variable; empty if it is not set.
std::string variable(const char* name);
// Returns a setting of the current profile in AWS's files; empty if it is not set.
std::string profile_value(const std::string& key);

// Returns keys from the first source that has any. If no source has keys, returns no keys, and requests are not signed.
// If a source is configured but fails, returns its error.
Result<S3Keys> find_keys(const std::string& scheme);

// Any thread. Caches one set of keys, which is obtained on first use and renewed before it expires.
class KeyRing {
 public:
  using Find = std::function<Result<S3Keys>()>;
  using Now = std::function<std::int64_t()>;
  KeyRing(Find find, Now now) : find_(std::move(find)), now_(std::move(now)) {}

  // May block one thread, which calls the key source. While that thread renews keys that are still valid, other threads
  // use these keys. If renewal fails, keys that are still valid are used.
  Result<void> prepare() const;
  // Called if keys of this generation were rejected: returns other keys, or an error. Calls the source only once if
  // several rejections occur at the same time.
  Result<void> renew(std::uint64_t refused) const;
  S3Keys keys() const;  // never blocks; returns the keys of the last prepare()

 private:
  enum class State : std::uint8_t { kMissing, kExpiring, kFresh };
  State state() const;
  Result<void> replace_keys() const;

  const Find find_;
  const Now now_;
  mutable ForkMutex finding_;  // held while find_ runs
  mutable ForkMutex mutex_;
  // guarded by mutex_
  mutable std::optional<S3Keys> keys_;
  mutable std::int64_t look_again_ = 0;  // earliest next attempt while the keys are still valid
};

}  // namespace feedline::storage
