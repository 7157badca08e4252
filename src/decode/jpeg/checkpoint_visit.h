// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/jpeg/baseline/baseline_frame.h"
#include "decode/jpeg/checkpoint_store.h"
#include "decode/jpeg/checkpoints.h"
#include "feedline/operation.h"

namespace feedline::decode {

// The checkpoints of the image that is being decoded: they are looked up before decoding, and saved afterwards if new
// ones were recorded. Not thread-safe. Each thread should reuse one object.
class CheckpointVisit {
 public:
  // If `store` is nullptr, checkpoints are not used.
  void use(CheckpointStore* store) { store_ = store; }

  // Returns the file's checkpoints for decoding the region, which may be empty so far, or nullptr if checkpoints would
  // not save time.
  Checkpoints* begin(std::span<const std::byte> file, const baseline::Frame& frame, const Box& region);
  // Call this function after the decode. Requires: the arguments of begin() are still valid.
  void end(bool is_decoded);

 private:
  bool find(const CheckpointGrid& grid, int end_mcu);

  CheckpointStore* store_ = nullptr;
  std::span<const std::byte> file_;
  std::size_t scan_ = 0;
  std::uint64_t key_ = 0;
  bool is_open_ = false;
  std::size_t known_before_ = 0;
  Checkpoints checkpoints_;
  std::vector<std::byte> entry_;
};

}  // namespace feedline::decode
