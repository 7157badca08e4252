// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/variable_size_items.h"

#include <utility>

namespace feedline::pipeline {
namespace {

// An item retains at most the memory of this many rows of typical size. Sizes vary between samples, but the memory of
// an unusually large sample must not be retained in every slot.
constexpr std::size_t kRetainedTimes = 8;
constexpr std::size_t kAlwaysRetained = std::size_t{64} << 10;

}  // namespace

std::uint64_t VariableSizeItems::tidy() {
  std::uint64_t capacity = 0, used = 0, retained = 0;
  for (const memory::ListItem& item : all) capacity += item.capacity(), used += item.size;
  const std::size_t most = kAlwaysRetained + kRetainedTimes * static_cast<std::size_t>(used / all.size());
  for (memory::ListItem& item : all) {
    item.end_loan();
    if (item.bytes.capacity() > most) item.bytes = {};
    retained += item.bytes.capacity();
  }
  *held += retained - std::exchange(bytes, retained);  // unsigned sums may wrap in between
  return capacity;
}

std::unique_ptr<VariableSizeItems> VariableSizeItemPool::take() {
  if (count_ == 0) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      auto items = std::move(spare_.back());
      spare_.pop_back();
      return items;
    }
  }
  return std::make_unique<VariableSizeItems>(count_, held_);
}

void VariableSizeItemPool::give_back(std::unique_ptr<VariableSizeItems> items) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(items));
}

}  // namespace feedline::pipeline
