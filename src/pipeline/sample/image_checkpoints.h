// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checkpoints for a source's JPEGs (decode/jpeg/checkpoints.h), from which the decoding of later crops starts, in this
// run and in later ones.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/entry_store.h"
#include "decode/jpeg/checkpoint_store.h"
#include "feedline/error.h"
#include "feedline/loader.h"
#include "storage/storage.h"

namespace feedline::pipeline {

// Thread-safe. Images are identified by their contents, so datasets of the same images can share checkpoints.
class ImageCheckpoints : public decode::CheckpointStore {
 public:
  // Stores checkpoints in `directory` if it is not empty, else next to a local file, or in the user's cache folder.
  static std::shared_ptr<ImageCheckpoints> of_source(const storage::Storage& storage, const std::string& source,
                                                     const std::string& directory);
  // Only in memory.
  static std::shared_ptr<ImageCheckpoints> in_memory();
  // Joins the checkpoints of several sources; new ones are stored with those of the first source.
  static std::shared_ptr<ImageCheckpoints> joined(const std::vector<std::shared_ptr<ImageCheckpoints>>& parts);

  bool find(std::uint64_t key, std::vector<std::byte>& entry) const override;
  void save(std::uint64_t key, std::span<const std::byte> entry) override;
  void note(decode::CheckpointEvent event) override;

  // Writes new checkpoints to their file if there are enough of them, and reads those written by other processes.
  // Failures are counted. always: writes even a few checkpoints, and returns failures.
  Result<void> write(bool always = false) const;
  CheckpointStats stats() const;
  std::string explain() const;  // empty: there are none

 private:
  explicit ImageCheckpoints(std::vector<std::shared_ptr<cache::EntryStore>> stores) : stores_(std::move(stores)) {}

  const std::vector<std::shared_ptr<cache::EntryStore>> stores_;  // at least one
  std::array<std::atomic<std::uint64_t>, decode::kCheckpointEvents> events_{};
};

}  // namespace feedline::pipeline
