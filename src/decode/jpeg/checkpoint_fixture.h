// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "decode/jpeg/checkpoint_store.h"

namespace feedline::decode {

// Checkpoints in memory. Not thread-safe.
class MemoryCheckpoints : public CheckpointStore {
 public:
  bool find(std::uint64_t key, std::vector<std::byte>& entry) const override {
    const auto at = entries.find(key);
    entry = at == entries.end() ? std::vector<std::byte>() : at->second;
    return at != entries.end();
  }
  void save(std::uint64_t key, std::span<const std::byte> entry) override {
    entries[key].assign(entry.begin(), entry.end());
  }
  void note(CheckpointEvent event) override { ++events[static_cast<std::size_t>(event)]; }

  int count(CheckpointEvent event) const { return events[static_cast<std::size_t>(event)]; }

  std::map<std::uint64_t, std::vector<std::byte>> entries;
  std::array<int, kCheckpointEvents> events{};
};

}  // namespace feedline::decode
