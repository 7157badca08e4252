// SPDX-License-Identifier: Apache-2.0
#include "storage/hub/hub_settings.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>

#include "base/fork_mutex.h"

namespace feedline::storage {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// huggingface_hub removes white space and line ends around a token.
std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

// Returns the text of a small file, which is read again only if it has changed: settings are needed for each URL.
std::string text_of(const std::string& path) {
  constexpr std::streamsize kLongest = 4096;
  struct Text {
    std::string path, text;
    std::filesystem::file_time_type time;
  };
  static ForkMutex* const mutex = new ForkMutex;
  static Text* const last = new Text;
  std::error_code failed;
  const auto time = std::filesystem::last_write_time(path, failed);
  if (failed) return {};
  const std::lock_guard lock(*mutex);
  if (last->path == path && last->time == time) return last->text;
  std::ifstream file(path);
  std::string text(kLongest, '\0');
  file.read(text.data(), kLongest);
  text.resize(static_cast<std::size_t>(file.gcount()));
  *last = {path, trimmed(text), time};
  return last->text;
}

bool is_on(const std::string& value) {
  std::string lower = value;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower == "1" || lower == "on" || lower == "yes" || lower == "true";
}

std::string expanded(std::string path) {
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, variable("HOME"));
  return path;
}

std::string hub_home() {
  if (const std::string home = variable("HF_HOME"); !home.empty()) return expanded(home);
  const std::string caches = variable("XDG_CACHE_HOME");
  if (caches.empty() && variable("HOME").empty()) return {};
  return expanded(caches.empty() ? "~/.cache" : caches) + "/huggingface";
}

}  // namespace

HubSettings hub_settings() {
  HubSettings settings;
  if (const std::string endpoint = variable("HF_ENDPOINT"); !endpoint.empty()) settings.endpoint = endpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const std::string home = hub_home();
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (settings.token.empty()) settings.token = trimmed(variable(name));
  if (settings.token.empty()) {
    const std::string file = variable("HF_TOKEN_PATH");
    if (!file.empty() || !home.empty()) settings.token = text_of(file.empty() ? home + "/token" : expanded(file));
  }
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (settings.cache.empty()) settings.cache = expanded(variable(name));
  if (settings.cache.empty() && !home.empty()) settings.cache = home + "/hub";
  const std::string offline = variable("HF_HUB_OFFLINE");
  settings.is_offline = is_on(offline.empty() ? variable("TRANSFORMERS_OFFLINE") : offline);
  return settings;
}

}  // namespace feedline::storage
