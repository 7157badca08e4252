// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace feedline::cache {

// Collects notes for the user about cached files, without duplicates; explain() shows them. Thread-safe.
class Notes {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(lines_, line) == lines_.end()) lines_.push_back(line);
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace feedline::cache
