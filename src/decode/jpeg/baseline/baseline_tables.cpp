// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_tables.h"

#include <algorithm>

#include "base/check.h"

namespace feedline::decode::baseline {

// Measured: building a table saves time after about 200 blocks of a photo.
constexpr std::int64_t kBlocksThatPay = 300;

BaselineTables::BaselineTables() : of_use_(2) {}

const HuffmanTable* BaselineTables::find(const HuffmanSpec& spec, HuffmanUse use) {
  Slots& slots = of_use_[static_cast<std::size_t>(use)];
  auto slot = std::ranges::find_if(slots, [&spec](const Slot& s) { return s.images > 0 && s.spec == spec; });
  if (slot == slots.end()) {
    slot = std::ranges::min_element(slots, {}, &Slot::last_image);
    FEEDLINE_CHECK(slot->images == 0 || slot->last_image < image_);
    slot->images = 0;
    slot->has_skip = false;
    if (!build_table(spec, use, slot->table)) return nullptr;
    slot->spec = spec;
  }
  if (slot->last_image != image_ || slot->images == 0) ++slot->images;
  slot->last_image = image_;
  return &slot->table;
}

const SkipTable* BaselineTables::find_skip(const HuffmanTable* table, std::int64_t blocks) {
  Slots& slots = of_use_[static_cast<std::size_t>(HuffmanUse::kAc)];
  const auto slot = std::ranges::find_if(slots, [table](const Slot& s) { return &s.table == table; });
  FEEDLINE_CHECK(slot != slots.end());
  if (!slot->has_skip) {
    if (slot->images < 2 && blocks < kBlocksThatPay) return nullptr;
    build_skip_table(slot->spec, slot->skip);
    slot->has_skip = true;
  }
  return &slot->skip;
}

}  // namespace feedline::decode::baseline
