// SPDX-License-Identifier: Apache-2.0
#include "storage/http/url.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace feedline::storage {
namespace {

constexpr std::string_view kMark = "://";
constexpr std::string_view kHidden = "hidden-";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// The query parameters with which S3, GCS, Azure and CDNs sign a URL. Parameters that only specify the time of the
// signature are not secret, but they are not part of the object's name either.
bool is_of_signature(std::string_view name) {
  static constexpr std::array<std::string_view, 13> kNames{
      "signature", "awsaccesskeyid", "expires",      "googleaccessid", "key-pair-id", "policy", "sig", "se",
      "sp",        "token",          "access_token", "hdnea",          "hdnts"};
  const std::string small = lower(name);
  return small.starts_with("x-amz-") || small.starts_with("x-goog-") ||
         std::ranges::find(kNames, small) != kNames.end();
}

// The hidden secrets by number, each with the host that it belongs to. Secrets are never erased, so names stay valid.
class Secrets {
 public:
  std::string hide(std::string_view authority, std::string_view secret) {
    const std::lock_guard lock(mutex_);
    const std::pair<std::string, std::string> entry{authority, secret};
    const auto found = std::ranges::find(all_, entry);
    const auto number = static_cast<std::size_t>(found - all_.begin());
    if (found == all_.end()) all_.push_back(entry);
    return std::string(kHidden) + std::to_string(number);
  }
  std::string show(std::string_view authority, std::string_view name) {
    if (!name.starts_with(kHidden)) return std::string(name);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].first == authority && name.substr(kHidden.size()) == std::to_string(i)) return all_[i].second;
    return std::string(name);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> all_;
};

Secrets& secrets() {
  static Secrets* const all = new Secrets;
  return *all;
}

// Returns the query after calling `change(name, value)` for each value; a parameter is dropped if the call returns
// nullopt.
template <typename Change>
std::string changed_query(std::string_view query, const Change& change) {
  std::string result;
  for (std::size_t begin = 0; begin <= query.size();) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view part = query.substr(begin, end - begin);
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const std::optional<std::string> value = change(name, part.substr(std::min(equals + 1, part.size())));
    if (value) {
      if (!result.empty()) result += '&';
      result += name;
      if (equals < part.size()) result += "=" + *value;
    }
    begin = end + 1;
  }
  return result;
}

std::string joined(const UrlParts& parts, const std::string& user, const std::string& query) {
  std::string url = std::string(parts.scheme) + std::string(kMark);
  if (!user.empty()) url += user + "@";
  url += std::string(parts.authority) + std::string(parts.path);
  return query.empty() ? url : url + "?" + query;
}

}  // namespace

std::optional<UrlParts> parts_of_url(std::string_view url) {
  UrlParts parts;
  const std::size_t mark = url.find(kMark);
  if (mark == url.npos || mark == 0) return {};
  parts.scheme = url.substr(0, mark);
  url = url.substr(mark + kMark.size());
  url = url.substr(0, url.find('#'));
  const std::size_t end = std::min(url.find_first_of("/?"), url.size());
  parts.authority = url.substr(0, end);
  if (const std::size_t at = parts.authority.rfind('@'); at != url.npos) {
    parts.user = parts.authority.substr(0, at);
    parts.authority = parts.authority.substr(at + 1);
  }
  const std::size_t question = std::min(url.find('?', end), url.size());
  parts.path = url.substr(end, question - end);
  parts.query = url.substr(std::min(question + 1, url.size()));
  if (parts.authority.empty()) return {};
  return parts;
}

bool is_private(const UrlParts& parts) {
  const std::string_view host = parts.authority.substr(0, parts.authority.rfind(':'));
  return parts.scheme == "https" || host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

std::string without_secrets(std::string_view url) {
  const auto parts = parts_of_url(url);
  if (!parts) return std::string(url);
  const std::string user = parts->user.empty() || parts->user.starts_with(kHidden)
                               ? std::string(parts->user)
                               : secrets().hide(parts->authority, parts->user);
  return joined(
      *parts, user,
      changed_query(parts->query, [&](std::string_view name, std::string_view value) -> std::optional<std::string> {
        if (!is_of_signature(name) || value.starts_with(kHidden)) return std::string(value);
        return secrets().hide(parts->authority, value);
      }));
}

std::string with_secrets(std::string_view url) {
  const auto parts = parts_of_url(url);
  if (!parts) return std::string(url);
  return joined(
      *parts, secrets().show(parts->authority, parts->user),
      changed_query(parts->query, [&](std::string_view, std::string_view value) -> std::optional<std::string> {
        return secrets().show(parts->authority, value);
      }));
}

std::string normal_url(std::string_view url) {
  const auto parts = parts_of_url(url);
  if (!parts) return std::string(url);
  const std::string scheme = lower(parts->scheme);
  std::string authority = lower(parts->authority);
  const std::string_view own_port = scheme == "https" ? ":443" : ":80";
  if (authority.ends_with(own_port)) authority.resize(authority.size() - own_port.size());
  UrlParts normal{scheme, {}, authority, parts->path.empty() ? std::string_view("/") : parts->path, {}};
  return joined(
      normal, "",
      changed_query(parts->query, [](std::string_view name, std::string_view value) -> std::optional<std::string> {
        if (is_of_signature(name)) return std::nullopt;
        return std::string(value);
      }));
}

std::string percent_encoded(std::string_view text, bool keeps_slashes) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '.' || c == '_' || c == '~' || (keeps_slashes && c == '/');
    if (is_plain) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  return result;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  const auto digit = [&](std::size_t i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = digit(i + 1), low = digit(i + 2);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return {};
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace feedline::storage
