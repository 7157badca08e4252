// SPDX-License-Identifier: Apache-2.0
#include "storage/lingering.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace feedline::storage {
namespace {

struct Left {
  std::mutex mutex;
  std::vector<std::pair<pid_t, std::unique_ptr<Lingering>>> all;  // with the process that created each

  void sweep() {
    const pid_t here = ::getpid();
    std::erase_if(all, [here](auto& left) {
      if (left.first == here) return left.second->is_over();
      // its threads and its ring are not in this process, so there is nothing to wait for or touch
      static_cast<void>(left.second.release());
      return true;
    });
  }
};

// Never destroyed: its buffers may be written to until the process exits.
Left& left_behind() {
  static Left* const left = new Left;
  return *left;
}

}  // namespace

void linger(std::unique_ptr<Lingering> what) {
  Left& left = left_behind();
  const std::lock_guard lock(left.mutex);
  left.all.emplace_back(::getpid(), std::move(what));
  left.sweep();
}

std::size_t lingering() {
  Left& left = left_behind();
  const std::lock_guard lock(left.mutex);
  left.sweep();
  return left.all.size();
}

}  // namespace feedline::storage
