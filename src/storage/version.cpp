// SPDX-License-Identifier: Apache-2.0
#include "storage/version.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace feedline::storage {
namespace {

std::string described(const Version& version) {
  std::string text = std::to_string(version.bytes) + " bytes";
  if (version.mtime_ns == 0) return text;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const std::int64_t ns = (version.mtime_ns % kNsPerSecond + kNsPerSecond) % kNsPerSecond;
  const auto seconds = static_cast<std::time_t>((version.mtime_ns - ns) / kNsPerSecond);
  std::tm when{};
  std::array<char, 32> date{};
  if (::gmtime_r(&seconds, &when) == nullptr) return text;
  std::strftime(date.data(), date.size(), "%F %T", &when);
  std::array<char, 16> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%09lld", static_cast<long long>(ns));
  return text + " of " + date.data() + fraction.data() + " UTC";
}

}  // namespace

Result<void> check_version(const std::string& name, const Version& indexed, const Version& now) {
  if (now == indexed) return {};
  const std::string before = described(indexed), after = described(now);
  auto error =
      storage_error("the file has changed between index and read: indexed as " + before + ", it is " +
                        (after == before ? "another version" : after) + "; open the dataset again to rebuild the index",
                    0);
  error.error().where.shard = name;
  return error;
}

bool is_strong(const Version& version) { return version.tag != 0 && (version.tag & kWeakTagBits) != kWeakTag; }

// Errors of servers, networks and disks have an errno; check_version() does not set one.
bool is_of_change(const Error& error) {
  return error.code == ErrorCode::kStorage && (error.system_errno == ENOENT || error.system_errno == 0);
}

}  // namespace feedline::storage
