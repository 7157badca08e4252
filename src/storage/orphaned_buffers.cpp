// SPDX-License-Identifier: Apache-2.0
#include "storage/orphaned_buffers.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace feedline::storage {
namespace {

struct Orphans {
  std::mutex mutex;
  std::vector<std::pair<pid_t, std::unique_ptr<OrphanedBuffers>>> all;  // with the process that created each

  void sweep() {
    const pid_t here = ::getpid();
    std::erase_if(all, [here](auto& each) {
      if (each.first == here) return each.second->is_over();
      // its threads and its ring are not in this process, so there is nothing to wait for or touch
      static_cast<void>(each.second.release());
      return true;
    });
  }
};

// Never destroyed, because buffers may be written to until the process exits.
Orphans& orphans() {
  static Orphans* const all = new Orphans;
  return *all;
}

}  // namespace

void orphan(std::unique_ptr<OrphanedBuffers> buffers) {
  Orphans& here = orphans();
  const std::lock_guard lock(here.mutex);
  here.all.emplace_back(::getpid(), std::move(buffers));
  here.sweep();
}

std::size_t orphaned_buffers() {
  Orphans& here = orphans();
  const std::lock_guard lock(here.mutex);
  here.sweep();
  return here.all.size();
}

}  // namespace feedline::storage
