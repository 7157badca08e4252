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

  // Whether ranges of remote images may be read. Call before other threads use this object.
  void allow_ranges(bool are_allowed) { are_ranges_allowed_ = are_allowed; }
  bool are_ranges_allowed() const { return are_ranges_allowed_; }
  // The outlines of remote JPEGs (decode/jpeg/jpeg_part.h), in a separate file.
  bool find_outline(std::uint64_t key, std::vector<std::byte>& outline) const;
  void save_outline(std::uint64_t key, std::span<const std::byte> outline);
  void forget_outline(std::uint64_t key);
  // Counts a range that was fetched in place of a whole image, and one that could not be used.
  void note_range(std::uint64_t bytes, std::uint64_t image_bytes);
  void note_refused_range() { refused_ranges_.fetch_add(1, std::memory_order_relaxed); }

  // Writes new checkpoints to their file if there are enough of them, and reads those written by other processes.
  // Failures are counted. always: writes even a few checkpoints, and returns failures.
  Result<void> write(bool always = false) const;
  CheckpointStats stats() const;
  std::string explain() const;  // empty: there are none

 private:
  using Stores = std::vector<std::shared_ptr<cache::EntryStore>>;
  ImageCheckpoints(Stores stores, Stores outlines) : stores_(std::move(stores)), outlines_(std::move(outlines)) {}

  const Stores stores_, outlines_;  // at least one each
  bool are_ranges_allowed_ = true;
  std::atomic<std::uint64_t> ranges_{0}, range_bytes_{0}, range_image_bytes_{0}, refused_ranges_{0};
  std::array<std::atomic<std::uint64_t>, decode::kCheckpointEvents> events_{};
};

}  // namespace feedline::pipeline
