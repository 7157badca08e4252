// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: batches of an epoch without a pipeline.

#include <memory>
#include <string>
#include <utility>

#include "pipeline/epoch/epoch.h"

namespace feedline::pipeline {

// Returns a list with the entry of one bad row.
inline BadEntries one_bad(std::uint64_t row, std::uint64_t sample, std::string what = "bad") {
  return {{row, {Error{ErrorCode::kData, std::move(what), {}, 0}, 0, 0, sample}}};
}

// Opens the next batch, so that its rows can be taken. The caller sets the layout of the batch.
inline Slot& open_batch(Epoch& epoch, std::shared_ptr<memory::Lease> lease = nullptr) {
  auto slot = Slot::make(epoch.most_rows(), epoch.prepares());
  slot->lease = std::move(lease);
  epoch.claim(slot);
  slot->assign_samples();
  slot->tickets.resume(0);
  return *slot;
}

}  // namespace feedline::pipeline
