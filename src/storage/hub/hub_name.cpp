// SPDX-License-Identifier: Apache-2.0
#include "storage/hub/hub_name.h"

#include <algorithm>

#include "storage/http/url.h"

namespace feedline::storage {
namespace {

constexpr std::string_view kStart = "hf://datasets/";
constexpr std::string_view kRefs = "refs/";

// Removes and returns the text before the next slash, and the slash.
std::string_view take_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find('/'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// The Hub allows fewer characters; these cannot change the meaning of a URL.
bool is_part_of_id(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, fits);
}

}  // namespace

std::string HubName::root() const {
  const bool is_ref = revision.starts_with(kRefs) && std::ranges::count(revision, '/') == 2;
  return std::string(kStart) + repository + "@" + (is_ref ? revision : percent_encoded(revision, false));
}

std::string HubName::text() const { return root() + "/" + path; }

std::optional<HubName> hub_name(std::string_view url) {
  const std::string_view scheme = "hf://";
  if (url.size() < scheme.size() || url.substr(2, 3) != "://" || (url[0] | 0x20) != 'h' || (url[1] | 0x20) != 'f')
    return {};
  url.remove_prefix(scheme.size());
  if (take_part(url) != "datasets") return {};
  const std::string_view organization = take_part(url);
  const std::size_t end = url.find_first_of("@/");
  const std::string_view name = url.substr(0, end);
  if (!is_part_of_id(organization) || !is_part_of_id(name)) return {};
  HubName found{std::string(organization) + "/" + std::string(name), "main", {}};
  url.remove_prefix(name.size());
  const bool has_revision = url.starts_with('@');
  if (!url.empty()) url.remove_prefix(1);
  if (has_revision && url.starts_with(kRefs)) {
    std::string_view rest = url.substr(kRefs.size());
    take_part(rest);
    take_part(rest);
    const std::size_t size = url.size() - rest.size();
    found.revision = url.substr(0, size - (url[size - 1] == '/' ? 1 : 0));
    url = rest;
  } else if (has_revision) {
    const auto revision = percent_decoded(take_part(url));
    if (!revision || revision->empty()) return {};
    found.revision = *revision == "~parquet" ? "refs/convert/parquet" : *revision;
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (found.revision.find("..") != found.revision.npos || std::ranges::any_of(found.revision, is_control)) return {};
  found.path = url;
  return found;
}

bool is_commit(std::string_view revision) {
  constexpr std::size_t kDigits = 40;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return revision.size() == kDigits && std::ranges::all_of(revision, is_digit);
}

}  // namespace feedline::storage
