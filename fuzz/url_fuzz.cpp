// SPDX-License-Identifier: Apache-2.0

// Any bytes as a URL: its parts are inside it, its secrets are hidden and can be restored, and its normal form is
// stable.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "storage/http/url.h"

using namespace feedline;

namespace {

constexpr std::string_view kHidden = "hidden-";
constexpr std::size_t kLeastSecret = 8;  // shorter ones may also be in the rest of the URL
constexpr int kMostHidden = 20'000;      // secrets are never removed, and each lookup compares with all

bool lies_in(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Values of signature parameters are replaced by a placeholder.
void check_signatures(std::string_view query) {
  static constexpr std::string_view kNames[] = {"X-Amz-Signature", "Signature", "sig", "token", "X-Goog-Signature"};
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    for (const std::string_view name : kNames)
      if (part.starts_with(name) && part.substr(name.size()).starts_with('='))
        FEEDLINE_CHECK(part.substr(name.size() + 1).starts_with(kHidden));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
  }
}

void check_secrets(const std::string& url, const storage::UrlParts& parts) {
  const std::string shown = storage::without_secrets(url), whole = storage::with_secrets(shown);
  const auto shown_parts = storage::parts_of_url(shown), whole_parts = storage::parts_of_url(whole);
  FEEDLINE_CHECK(shown_parts && whole_parts);
  FEEDLINE_CHECK(shown_parts->authority == parts.authority && shown_parts->path == parts.path);
  FEEDLINE_CHECK(shown_parts->user.empty() == parts.user.empty());
  FEEDLINE_CHECK(shown_parts->user.empty() || shown_parts->user.starts_with(kHidden));
  check_signatures(shown_parts->query);
  if (url.find(kHidden) == url.npos) {  // otherwise it refers to a secret of another URL
    FEEDLINE_CHECK(whole_parts->user == parts.user);
    FEEDLINE_CHECK(storage::with_secrets(storage::without_secrets(whole)) == whole);
  }
  const std::string rest = std::string(parts.authority) + std::string(parts.path) + std::string(parts.query);
  if (parts.user.size() >= kLeastSecret && rest.find(parts.user) == rest.npos)
    FEEDLINE_CHECK(shown.find(parts.user) == shown.npos || parts.user.starts_with(kHidden) ||
                   parts.scheme.find(parts.user) != parts.scheme.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string url(reinterpret_cast<const char*>(data), bytes);
  const std::string encoded = storage::percent_encoded(url, false);
  FEEDLINE_CHECK(encoded.size() >= url.size() && encoded.size() <= 3 * url.size());
  FEEDLINE_CHECK(encoded.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%") ==
                 encoded.npos);
  const auto parts = storage::parts_of_url(url);
  if (!parts) {
    FEEDLINE_CHECK(storage::without_secrets(url) == url && storage::normal_url(url) == url);
    return 0;
  }
  for (const std::string_view part : {parts->scheme, parts->user, parts->authority, parts->path, parts->query})
    FEEDLINE_CHECK(lies_in(part, url));
  const std::string normal = storage::normal_url(url);
  const bool has_one_port = std::ranges::count(parts->authority, ':') <= 1;
  if (has_one_port) FEEDLINE_CHECK(storage::normal_url(normal) == normal);
  static int hidden = 0;
  if (hidden++ < kMostHidden) {
    check_secrets(url, *parts);
    if (url.find(kHidden) == url.npos) FEEDLINE_CHECK(storage::normal_url(storage::without_secrets(url)) == normal);
  }
  return 0;
}
