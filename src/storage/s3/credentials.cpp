// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/credentials.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "feedline/credentials.h"
#include "storage/local_storage.h"

namespace feedline::storage {
namespace {

constexpr std::int64_t kBeforeExpiry = 300;  // seconds before expiry at which AWS and Google issue new ones
constexpr std::int64_t kBetweenLooks = 15;   // seconds until the next attempt if a source fails or has no newer keys
constexpr std::uint64_t kMostFileBytes = 1 << 20;

// Never destroyed, because engine threads may need keys while statics are destroyed.
struct Source {
  ForkMutex mutex;
  FindCredentials find;  // guarded by mutex
};
Source& source() {
  static Source* const only = new Source;
  return *only;
}

Result<S3Keys> keys_by_library(const std::string& scheme) {
  FindCredentials find;
  {
    const std::lock_guard lock(source().mutex);
    find = source().find;
  }
  if (!find) return S3Keys{};
  FEEDLINE_TRY(Credentials found, find(scheme));
  return S3Keys{std::move(found.id), std::move(found.secret), std::move(found.token), found.expires,
                std::move(found.bearer)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string home_file(const char* named_by, const char* name) {
  const std::string named = variable(named_by);
  return named.empty() ? variable("HOME") + "/.aws/" + name : named;
}

std::string profile_name() {
  std::string name = variable("AWS_PROFILE");
  if (name.empty()) name = variable("AWS_DEFAULT_PROFILE");
  return name.empty() ? "default" : name;
}

// Parses lines "[name]" and "key = value"; a section "profile x" is also found with the name x.
std::map<std::string, std::string> profile_in(std::string_view file, std::string_view profile) {
  std::map<std::string, std::string> values;
  bool is_inside = false;
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view line = file.substr(0, end), text = trimmed(line);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      std::string_view name = trimmed(text.substr(1, text.find(']') - 1));
      if (name.starts_with("profile ")) name = trimmed(name.substr(8));
      is_inside = name == profile;
      continue;
    }
    const std::size_t equals = text.find('=');
    const bool is_nested = line.front() == ' ' || line.front() == '\t';
    if (is_inside && !is_nested && equals != text.npos)
      values[std::string(trimmed(text.substr(0, equals)))] = trimmed(text.substr(equals + 1));
  }
  return values;
}

Result<S3Keys> find_s3_keys() {
  S3Keys keys{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"), 0};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  const bool has_role = !variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty() || !profile_value("role_arn").empty();
  if (has_role) return keys_by_library("s3");
  keys = {profile_value("aws_access_key_id"), profile_value("aws_secret_access_key"),
          profile_value("aws_session_token"), 0};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  return keys_by_library("s3");
}

Result<S3Keys> find_google_keys() {
  S3Keys keys{variable("GS_ACCESS_KEY_ID"), variable("GS_SECRET_ACCESS_KEY"), "", 0};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  keys = {};
  keys.bearer = variable("CLOUDSDK_AUTH_ACCESS_TOKEN");
  if (!keys.bearer.empty()) return keys;
  return keys_by_library("gs");
}

}  // namespace

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::string profile_value(const std::string& key) {
  // the credentials file takes precedence over the config file
  for (const auto& path :
       {home_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), home_file("AWS_CONFIG_FILE", "config")}) {
    memory::ByteBuffer buffer;
    const auto bytes = local_storage()->read_all(path, buffer, kMostFileBytes);
    if (!bytes) continue;
    const auto values = profile_in({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, profile_name());
    if (const auto found = values.find(key); found != values.end()) return found->second;
  }
  return {};
}

Result<S3Keys> find_keys(const std::string& scheme) { return scheme == "gs" ? find_google_keys() : find_s3_keys(); }

KeyRing::State KeyRing::state() const {
  const std::lock_guard lock(mutex_);
  if (!keys_) return State::kMissing;
  const std::int64_t now = now_();
  if (keys_->expires == 0 || keys_->expires - now > kBeforeExpiry) return State::kFresh;
  if (keys_->expires <= now) return State::kMissing;
  return now < look_again_ ? State::kFresh : State::kExpiring;
}

Result<void> KeyRing::prepare() const {
  const State before = state();
  if (before == State::kFresh) return {};
  std::unique_lock finding(finding_, std::defer_lock);
  if (before == State::kMissing)
    finding.lock();
  else if (!finding.try_lock())
    return {};                              // another thread renews them
  if (state() == State::kFresh) return {};  // another thread has found them
  auto found = replace_keys();
  {
    const std::lock_guard lock(mutex_);
    look_again_ = now_() + kBetweenLooks;
  }
  if (found || state() != State::kMissing) return {};
  return found;
}

Result<void> KeyRing::renew(std::uint64_t refused) const {
  const std::lock_guard finding(finding_);
  if (keys().generation != refused) return {};
  return replace_keys();
}

Result<void> KeyRing::replace_keys() const {
  FEEDLINE_TRY(S3Keys found, find_());
  const std::lock_guard lock(mutex_);
  found.generation = keys_ ? keys_->generation + 1 : 1;
  keys_ = std::move(found);
  return {};
}

S3Keys KeyRing::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_.value_or(S3Keys{});
}

}  // namespace feedline::storage

namespace feedline {

void find_credentials_by(FindCredentials find) {
  const std::lock_guard lock(storage::source().mutex);
  storage::source().find = std::move(find);
}

}  // namespace feedline
