// SPDX-License-Identifier: Apache-2.0
// "example:///path" reads the local file "/path". A real scheme would send requests.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "parts.h"

namespace {

namespace files = std::filesystem;

std::string path_of(const char* url) { return std::string(url).substr(std::string("example://").size()); }

feedline_object object_of(const files::path& path) {
  if (files::is_directory(path)) return {0, 0, 1};
  const auto time = files::last_write_time(path).time_since_epoch().count();
  return {files::file_size(path), static_cast<std::uint64_t>(time), 0};
}

int stat_object(void*, const char* url, feedline_object* object, feedline_message* message) {
  return feedline::plugin_guard(message, [&] {
    const files::path path = path_of(url);
    if (!files::exists(path)) return feedline::plugin_failure(message, FEEDLINE_NOT_FOUND, "the file does not exist");
    *object = object_of(path);
    return int{FEEDLINE_OK};
  });
}

int read_object(void*, const char* url, uint64_t offset, void* out, size_t bytes, size_t* got,
                feedline_message* message) {
  return feedline::plugin_guard(message, [&] {
    std::ifstream file(path_of(url), std::ios::binary);
    if (!file) return feedline::plugin_failure(message, FEEDLINE_FAILED, "the file cannot be opened");
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes));
    *got = static_cast<size_t>(file.gcount());
    return int{FEEDLINE_OK};
  });
}

int list_folder(void*, const char* url, int all, const feedline_listing* listing, feedline_message* message) {
  return feedline::plugin_guard(message, [&] {
    const files::path folder = path_of(url);
    if (!files::is_directory(folder)) return int{FEEDLINE_OK};
    const auto add = [&](const files::path& path) {
      const feedline_object object = object_of(path);
      listing->add(listing->host, files::relative(path, folder).c_str(), &object);
    };
    if (all != 0) {
      for (const auto& entry : files::recursive_directory_iterator(folder))
        if (!entry.is_directory()) add(entry.path());
    } else {
      for (const auto& entry : files::directory_iterator(folder)) add(entry.path());
    }
    return int{FEEDLINE_OK};
  });
}

}  // namespace

const feedline_storage_v1 kStorage{
    sizeof(feedline_storage_v1), "example", "1.0", nullptr, stat_object, read_object, list_folder};
