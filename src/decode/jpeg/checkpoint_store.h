// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface through which the JPEG decoder stores and looks up the checkpoints of images.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace feedline::decode {

enum class CheckpointEvent : std::uint8_t {
  kUsed,     // a decode started at a checkpoint
  kMade,     // an image got its first checkpoints, or more of them
  kChanged,  // the bytes were not those of the checkpoints: they are made again
  kDamaged,  // the stored entry was unreadable: they are made again
};
inline constexpr std::size_t kCheckpointEvents = 4;

// Thread-safe.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  // Copies an image's entry (checkpoints.h). Returns false, with an empty entry, if there is none.
  virtual bool find(std::uint64_t key, std::vector<std::byte>& entry) const = 0;
  // Adds or replaces an image's entry. An entry that cannot be stored is dropped.
  virtual void save(std::uint64_t key, std::span<const std::byte> entry) = 0;
  virtual void note(CheckpointEvent event) = 0;
};

}  // namespace feedline::decode
