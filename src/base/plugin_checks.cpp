// SPDX-License-Identifier: Apache-2.0
#include "base/plugin_checks.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

namespace feedline::base {
namespace {

bool is_of_name(char c, bool is_lower) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
         (!is_lower && c >= 'A' && c <= 'Z');
}

// Returns text that can be part of an error message.
std::string shown(const char* text, std::size_t bytes) {
  std::string shown(text, bytes);
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return shown;
}

}  // namespace

Result<void> check_plugin_name(const std::string& what, const std::string& member, const char* name, bool is_lower) {
  constexpr std::size_t kMost = 64;
  const std::size_t bytes = name == nullptr ? 0 : ::strnlen(name, kMost + 1);
  if (bytes == 0) return config_error(what + " has no " + member);
  if (bytes <= kMost && std::all_of(name, name + bytes, [&](char c) { return is_of_name(c, is_lower); })) return {};
  return config_error(what + " has the " + member + " '" + shown(name, std::min(bytes, kMost)) + "'; use at most " +
                      std::to_string(kMost) + (is_lower ? " lower-case letters" : " letters") +
                      " (a-z), digits, '_', '-' and '.'");
}

Result<void> check_plugin_list(const std::string& what, const std::string& members, const void* list,
                               std::size_t count) {
  constexpr std::size_t kMost = 1000;
  if (count > kMost)
    return config_error(what + " has " + std::to_string(count) + " " + members + "; the limit is " +
                        std::to_string(kMost));
  if (count > 0 && list == nullptr)
    return config_error(what + " has " + std::to_string(count) + " " + members + ", but the list of them is NULL");
  return {};
}

Result<void> check_plugin_extensions(const std::string& what, const char* const* extensions, std::size_t count) {
  FEEDLINE_CHECK_OK(check_plugin_list(what, "extensions", extensions, count));
  for (const char* const extension : std::span(extensions, count)) {
    FEEDLINE_CHECK_OK(check_plugin_name(what, "extension", extension, true));
    if (std::strchr(extension, '.') != nullptr)
      return config_error(what + " has the extension '" + extension + "'; omit the dot");
  }
  return {};
}

}  // namespace feedline::base
