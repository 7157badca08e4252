// SPDX-License-Identifier: Apache-2.0
#pragma once

// The foreground voxels of label volumes: found once per volume, and stored for later runs.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fork_mutex.h"
#include "base/random.h"
#include "cache/entry_store.h"
#include "feedline/error.h"
#include "memory/volume.h"
#include "storage/storage.h"

namespace feedline::pipeline {

// At most kMostVoxels voxels of each label, chosen uniformly.
struct Foreground {
  static constexpr std::size_t kMostVoxels = 10'000;  // nnU-Net's number
  std::vector<std::uint64_t> ends;                    // cumulative number of voxels per label
  std::vector<std::uint64_t> voxels;                  // indexes in C order

  bool is_empty() const { return voxels.empty(); }
  // Draws a label uniformly, then one of its voxels. Requires: not empty.
  std::uint64_t draw(base::Random& random) const;
};

// Reads the whole volume. values: the labels to find; if empty, all labels above 0.
Result<Foreground> find_foreground(const memory::Volume& labels, std::span<const int> values);

// Thread-safe.
class ForegroundIndex {
 public:
  // The store is next to `object`, in `directory` if that is not empty, or in the user's cache folder.
  ForegroundIndex(const storage::Storage& storage, const std::string& object, const std::string& directory);
  Result<std::shared_ptr<const Foreground>> find(const memory::Volume& labels, std::span<const int> values);
  // Writes new entries.
  void write() { (void)store_.write(true); }

 private:
  cache::EntryStore store_;
  ForkMutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Foreground>> recent_;
};

}  // namespace feedline::pipeline
