// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: objects in a node cache, and the contents of the cache's folder.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/node/node_cache.h"
#include "storage/temporary_folder.h"

namespace feedline::cache {

// Returns bytes that depend only on the name, in every process.
inline std::string content_of(const std::string& object, std::size_t bytes) {
  std::string content(bytes, '\0');
  std::uint64_t x = 0x9e37'79b9'7f4a'7c15;
  for (const char c : object) x = x * 31 + static_cast<unsigned char>(c);
  for (char& c : content) c = static_cast<char>((x = x * 6364136223846793005u + 1442695040888963407u) >> 56);
  return content;
}

inline std::string text_in(const HeldCopy& held) {
  std::string text(held.entry.version.bytes, '\0');
  const ssize_t got = ::pread(held.file.get(), text.data(), text.size(), 0);
  return text.substr(0, got > 0 ? static_cast<std::size_t>(got) : 0);
}

// Runs `work` in several processes, each with its number, until all have exited. Returns the processes' exit statuses,
// or 128 plus the signal. Calls `meanwhile` repeatedly while the processes run. A thread could hold an allocator lock
// during a fork, and the child would deadlock.
inline std::vector<int> in_processes(int count, const std::function<int(int)>& work,
                                     const std::function<void()>& meanwhile = {}) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work(i));
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    pid_t ended = 0;
    while (meanwhile && (ended = ::waitpid(child, &status, WNOHANG)) == 0) meanwhile();
    if (ended == 0) ended = ::waitpid(child, &status, 0);
    EXPECT_EQ(ended, child);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return statuses;
}

class NodeCacheTest : public testing::Test {
 protected:
  std::shared_ptr<NodeCache> cache(std::uint64_t limit, const NodeCalls& calls = node_calls()) const {
    auto opened = NodeCache::open(path_, {.bytes = limit}, calls);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? *opened : nullptr;
  }
  // Returns "whole", "wrong bytes", or "" if not cached; `fetched` counts the fetches.
  std::string keep(NodeCache& cache, const std::string& object, std::size_t bytes, int* fetched = nullptr) const {
    auto held = cache.keep(object, {bytes, 1}, NodeCache::Check::kOnce, [&](NodeCache::Output& output) -> Result<void> {
      if (fetched != nullptr) ++*fetched;
      const std::string content = content_of(object, bytes);
      for (std::size_t at = 0; at < content.size(); at += kPiece)
        FEEDLINE_CHECK_OK(
            output.append(std::as_bytes(std::span(content).subspan(at, std::min(kPiece, content.size() - at)))));
      return {};
    });
    EXPECT_TRUE(held) << held.error().message();
    if (!held || !*held) return {};
    return text_in(**held) == content_of(object, bytes) ? "whole" : "wrong bytes";
  }
  bool has(NodeCache& cache, const std::string& object, std::size_t bytes) const {
    const auto held = cache.find(object, {bytes, 1}, NodeCache::Check::kOnce);
    EXPECT_TRUE(!held || text_in(*held) == content_of(object, bytes)) << object;
    return held.has_value();
  }
  std::string file_of(const std::string& object, std::size_t bytes, std::string_view suffix = kObject) const {
    return copy_path(path_, entry_name(object, {bytes, 1})) + std::string(suffix);
  }
  // Returns the size of all files in whole pages, as reported by the file system.
  std::uint64_t pages() const {
    std::uint64_t bytes = 0;
    std::error_code gone;
    for (const auto& file : std::filesystem::recursive_directory_iterator(path_, gone))
      if (file.is_regular_file(gone) && file.path().filename() != kLedgerName)
        bytes += (file.file_size(gone) + kPage - 1) / kPage * kPage;
    return bytes;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::recursive_directory_iterator(path_))
      if (file.is_regular_file()) names.push_back(file.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  static std::uint64_t room(std::initializer_list<std::uint64_t> objects) {
    std::uint64_t bytes = 0;
    for (const std::uint64_t object : objects) bytes += disk_bytes(object);
    return bytes;
  }

  static constexpr std::size_t kPiece = 3000;
  storage::TemporaryFolder folder_;
  const std::string path_ = folder_.path("cache");
};

}  // namespace feedline::cache
