// SPDX-License-Identifier: Apache-2.0
#include "cache/places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "storage/local_file.h"

namespace feedline::cache {

Result<void> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return storage::file_error("cannot make the folder", path, error.value());
  return {};
}

Result<std::string> cache_folder() {
  // the XDG base directory specification requires ignoring relative values
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && cache[0] == '/')
    return std::string(cache) + "/feedline";
  if (const char* home = std::getenv("HOME"); home && home[0] == '/') return std::string(home) + "/.cache/feedline";
  return storage_error("no cache folder: neither XDG_CACHE_HOME nor HOME is set", 0);
}

bool may_remove(const std::string& path) {
  const std::string folder = folder_of(path);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return false;
  struct stat of_folder {
  }, of_file{};
  if (::stat(folder.c_str(), &of_folder) != 0 || ::lstat(path.c_str(), &of_file) != 0) return false;
  // as in /tmp: everyone can write but remove only their own files
  const uid_t user = ::geteuid();
  return (of_folder.st_mode & S_ISVTX) == 0 || user == 0 || user == of_file.st_uid || user == of_folder.st_uid;
}

std::string last_part(const std::string& name) { return std::filesystem::path(name).filename().string(); }
std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

}  // namespace feedline::cache
