// SPDX-License-Identifier: Apache-2.0
#include "storage/pipe/command_text.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace feedline::storage {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// Splits the command into words like a shell and removes quotes, but expands nothing.
std::vector<std::string> words_of(std::string_view command) {
  static constexpr std::string_view kBetween = " \t\n;|&()<>";
  std::vector<std::string> words(1);
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != '\'' && c == '\\' && i + 1 < command.size()) {
      words.back() += command[++i];
    } else if (quote == 0 && kBetween.find(c) != kBetween.npos) {
      // "&" separates query parameters in an unquoted URL: the shell would start another command, but the secret must
      // be hidden
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

bool is_secret_name(std::string_view name) {
  static constexpr std::array<std::string_view, 13> kParts{"secret",    "token",  "passw",   "credential", "signature",
                                                           "api_key",   "apikey", "api-key", "access_key", "access-key",
                                                           "accesskey", "pwd",    "auth"};
  const std::string small = lower(name);
  return small == "sig" || std::ranges::any_of(kParts, [&](std::string_view part) { return small.contains(part); });
}

bool takes_a_user(std::string_view option) { return option == "-u" || option == "--user" || option == "-U"; }
bool takes_a_header(std::string_view option) { return option == "-H" || option == "--header" || option == "-b"; }

class Collector {
 public:
  std::vector<std::string> found;

  void add(std::string_view secret) {
    while (secret.starts_with(' ')) secret.remove_prefix(1);
    if (!secret.empty() && std::ranges::find(found, secret) == found.end()) found.emplace_back(secret);
  }
  // "Authorization: Bearer SECRET", and cookies
  void add_header(std::string_view header) {
    const std::size_t colon = header.find(':');
    if (colon == header.npos) return add(header);
    const std::string name = lower(header.substr(0, colon));
    if (!is_secret_name(name) && name != "cookie") return;
    std::string_view value = header.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (const std::size_t space = value.find(' '); space != value.npos) value.remove_prefix(space + 1);
    add(value);
  }
  // "user:password@" in a URL, and values of its query parameters
  void add_url(std::string_view word) {
    const std::size_t mark = word.find("://");
    if (mark == word.npos) return;
    std::string_view rest = word.substr(mark + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
    if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
      const std::string_view user = authority.substr(0, at);
      const std::size_t colon = user.find(':');
      add(colon == user.npos ? user : user.substr(colon + 1));
    }
  }
  void add_named(std::string_view text) {
    for (std::size_t equals = text.find('='); equals != text.npos; equals = text.find('=', equals + 1)) {
      const std::string_view before = text.substr(0, equals);
      const std::string_view name = before.substr(before.find_last_of("?&; ") + 1);
      if (is_secret_name(name)) add(text.substr(equals + 1, text.find('&', equals) - equals - 1));
    }
  }
};

}  // namespace

std::vector<std::string> secrets_in(std::string_view command) {
  Collector secrets;
  const std::vector<std::string> words = words_of(command);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    secrets.add_url(word);
    secrets.add_named(word);
    if (word.starts_with("-H") && word.size() > 2) secrets.add_header(word.substr(2));
    if (word.starts_with("-u") && word.size() > 2 && word.contains(':')) secrets.add(word.substr(2));
    if (word.starts_with("--header=")) secrets.add_header(word.substr(9));
    if (word.starts_with("--user=")) secrets.add(word.substr(7));
    if (i + 1 == words.size()) break;
    if (takes_a_user(word)) secrets.add(words[i + 1]);
    if (takes_a_header(word)) secrets.add_header(words[i + 1]);
    if (word.starts_with("--") && !word.contains('=') && is_secret_name(word)) secrets.add(words[i + 1]);
  }
  // longest first, so that a secret that contains another one is replaced entirely
  std::ranges::sort(secrets.found, std::ranges::greater(), &std::string::size);
  return std::move(secrets.found);
}

}  // namespace feedline::storage
