// SPDX-License-Identifier: Apache-2.0
#include "storage/hub/hub_site.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "storage/http/url.h"
#include "storage/hub/hub_answers.h"
#include "storage/hub/hub_name.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 2ms;          // for a redirect that another read has requested
constexpr std::int64_t kLongestMargin = 60;  // seconds before the expiry of a URL
constexpr std::size_t kLongestReason = 300;  // of a body that is shown
constexpr std::uint64_t kOfEndpoint = 0;     // Call::keys

std::int64_t now_in_seconds() { return static_cast<std::int64_t>(std::time(nullptr)); }

std::string origin_of(std::string_view url) {
  const auto parts = parts_of_url(url);
  return parts ? std::string(parts->scheme) + "://" + std::string(parts->authority) : std::string();
}

// Returns the first line of a body without markup and control characters.
std::string shown(std::string_view body) {
  std::string text;
  bool is_markup = false;
  for (const char c : body) {
    if (c == '<' || c == '>') is_markup = c == '<';
    const bool is_blank = is_markup || c == '>' || static_cast<unsigned char>(c) <= ' ';
    if (is_blank && (text.empty() || text.back() == ' ')) continue;
    text += is_blank ? ' ' : c;
    if (text.size() == kLongestReason) break;
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

HubSite::HubSite(HubSettings settings) : settings_(std::move(settings)), origin_(origin_of(settings_.endpoint)) {}

std::string HubSite::target_of(const std::string& object) const {
  const auto name = hub_name(object);
  if (!name) return {};
  return "/datasets/" + name->repository + "/resolve/" + percent_encoded(name->revision, false) + "/" +
         percent_encoded(name->path, true);
}

Call HubSite::call_endpoint(const std::string& target) const {
  Call call{.url = settings_.endpoint + target, .headers = {"Accept-Encoding: identity"}, .keys = kOfEndpoint};
  if (!settings_.token.empty()) call.headers.push_back("Authorization: Bearer " + settings_.token);
  return call;
}

Result<Call> HubSite::call(const std::string& object, std::string_view query) const {
  if (settings_.is_offline) {
    auto error = storage_error("HF_HUB_OFFLINE=1 forbids requests, and the file is not in " + settings_.cache +
                                   ": unset it, or download the file first",
                               0);
    error.error().where.shard = object;
    return error;
  }
  const auto endpoint = parts_of_url(settings_.endpoint);
  if (!endpoint)
    return config_error("HF_ENDPOINT is '" + settings_.endpoint + "', which is not a URL: write https://host");
  if (!settings_.token.empty() && !is_private(*endpoint))
    return config_error("HF_ENDPOINT '" + settings_.endpoint +
                        "' is not encrypted, so others could read the token: use https://, or unset HF_TOKEN");
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  const auto later = [&](Clock::duration wait) {
    Call call;
    call.later = std::max(1ms, std::chrono::duration_cast<std::chrono::milliseconds>(wait));
    return call;
  };
  const auto found = locations_.find(object);
  if (query.empty() && found != locations_.end() && !found->second.url.empty()) {
    const Location& location = found->second;
    if (location.renew_at == 0 || now_in_seconds() < location.renew_at) {
      Call call{.url = location.url, .headers = {"Accept-Encoding: identity"}, .keys = location.generation};
      if (location.is_of_endpoint && !settings_.token.empty())
        call.headers.push_back("Authorization: Bearer " + settings_.token);
      return call;
    }
  }
  if (now < closed_until_) return later(closed_until_ - now);
  if (!query.empty()) {
    Call call = call_endpoint(std::string(query));
    call.follows = true;  // to a renamed dataset
    return call;
  }
  if (found != locations_.end() && !found->second.asking.expired()) return later(kBetweenLooks);
  const std::string target = target_of(object);
  if (target.empty()) return config_error("'" + object + "' does not name a file of a dataset on the Hub");
  Call call = call_endpoint(target);
  if (found != locations_.end()) {  // a redirect is expected: others wait for it
    call.ticket = std::make_shared<int>(0);
    found->second.asking = call.ticket;
  }
  return call;
}

void HubSite::expect_redirect(const std::string& object) const {
  const std::lock_guard lock(mutex_);
  locations_.try_emplace(object);
}

bool HubSite::has_moved(const std::string& object, const ResponseHead& head, std::string_view /*body*/) const {
  constexpr int kRedirects[] = {301, 302, 303, 307, 308};
  if (std::ranges::find(kRedirects, head.status) == std::end(kRedirects) || head.location.empty()) return false;
  const std::lock_guard lock(mutex_);
  Location& location = locations_[object];
  std::string url = head.location;
  if (url.starts_with("//")) {
    url = origin_.substr(0, origin_.find("//")) + url;
  } else if (url.starts_with('/')) {
    url = (location.url.empty() || location.is_of_endpoint ? origin_ : origin_of(location.url)) + url;
  }
  const std::string origin = origin_of(url);
  if (origin.empty() || (origin_.starts_with("https:") && !origin.starts_with("https:"))) return false;
  location.url = std::move(url);
  location.is_of_endpoint = origin == origin_;
  location.generation = ++generation_;
  location.renew_at = 0;
  const auto now = now_in_seconds();
  // an expiry in the past is a difference between clocks
  if (const auto expiry = expiry_of_url(location.url); expiry && *expiry > now)
    location.renew_at = *expiry - std::min(kLongestMargin, (*expiry - now) / 4);
  return true;
}

Refused HubSite::refused(const ResponseHead& head, std::string_view body, std::uint64_t keys) const {
  if (keys != kOfEndpoint && (head.status == 401 || head.status == 403)) return Refused::kForCredentials;
  if (head.status == 429 && head.retry_after && keys == kOfEndpoint) {
    const std::lock_guard lock(mutex_);
    closed_until_ = std::max(closed_until_, Clock::now() + *head.retry_after);
  }
  return Site::refused(head, body, keys);
}

Result<void> HubSite::renew(std::uint64_t keys) const {
  const std::lock_guard lock(mutex_);
  for (auto& [object, location] : locations_)
    if (location.generation == keys) location = {};
  return {};
}

std::string HubSite::reason(const ResponseHead& head, std::string_view body) const {
  const std::string& code = head.error_code;
  std::string text = head.error_message.empty() ? shown(body) : head.error_message;
  const auto add = [&](const std::string& advice) { text += (text.empty() ? "" : ": ") + advice; };
  const bool has_token = !settings_.token.empty();
  const std::string log_in = "set HF_TOKEN to a token of an account that may read it, or run `hf auth login`";
  if (code == "GatedRepo") {
    add("the dataset is gated: accept its conditions on its page at " + settings_.endpoint +
        (has_token ? "; a fine-grained token also needs the permission to read gated repositories"
                   : ", and " + log_in));
  } else if (code == "RepoNotFound" || (code.empty() && head.status == 401)) {
    add(has_token ? "the dataset does not exist, or the token may not read it: check the name and the token"
                  : "the dataset does not exist, or it is private: check the name; for a private one, " + log_in);
  } else if (code == "RevisionNotFound") {
    add("the dataset has no such branch, tag or commit: correct the text after '@'");
  } else if (code == "EntryNotFound") {
    add("this revision has no such file");
  } else if (head.status == 429 && !has_token) {
    add("a token raises the limit of requests: " + log_in);
  }
  return text;
}

std::string HubSite::target_of_page(std::string_view url) {
  if (url.starts_with('/')) return std::string(url);
  const auto parts = parts_of_url(url);
  const std::size_t begin = parts ? parts->path.find("/api/datasets/") : std::string_view::npos;
  if (begin == std::string_view::npos) return {};
  return std::string(parts->path.substr(begin)) + (parts->query.empty() ? "" : "?" + std::string(parts->query));
}

}  // namespace feedline::storage
