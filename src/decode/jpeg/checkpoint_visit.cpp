// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/checkpoint_visit.h"

#include <algorithm>

#include "decode/jpeg/baseline/baseline_decoder.h"

namespace feedline::decode {

bool CheckpointVisit::find(const CheckpointGrid& grid, int end_mcu) {
  if (!store_->find(key_, entry_)) return false;
  if (!read_checkpoints(entry_, grid, file_.size(), scan_, checkpoints_)) {
    store_->note(CheckpointEvent::kDamaged);
    return false;
  }
  const std::size_t last = std::min(checkpoints_.grid.last_before(end_mcu), checkpoints_.known.size() - 1);
  if (is_unchanged(checkpoints_, last, file_, scan_)) return true;
  store_->note(CheckpointEvent::kChanged);
  return false;
}

Checkpoints* CheckpointVisit::begin(std::span<const std::byte> file, const baseline::Frame& frame, const Box& region) {
  is_open_ = false;
  if (store_ == nullptr) return nullptr;
  const baseline::BaselineDecoder::Reach reach = baseline::BaselineDecoder::reach_of(frame, region);
  if (reach.skipped < kLeastSkippedMcus) return nullptr;
  file_ = file, scan_ = file.size() - frame.scan.size();
  const auto grid = checkpoint_grid(frame.mcus_across(), frame.mcus_down(), file.size());
  if (!grid) return nullptr;
  key_ = checkpoint_key(file, scan_);
  is_open_ = true;
  if (!find(*grid, reach.end_mcu)) {
    checkpoints_.clear();
    checkpoints_.grid = *grid;
  }
  known_before_ = checkpoints_.known.size();
  return &checkpoints_;
}

void CheckpointVisit::end(bool is_decoded) {
  if (!is_open_ || !is_decoded) return;
  is_open_ = false;
  if (known_before_ > 1) store_->note(CheckpointEvent::kUsed);
  if (checkpoints_.known.size() <= std::max<std::size_t>(known_before_, 1)) return;
  add_digests(checkpoints_, file_, scan_);
  write_checkpoints(checkpoints_, file_, entry_);
  store_->save(key_, entry_);
  store_->note(CheckpointEvent::kMade);
}

}  // namespace feedline::decode
