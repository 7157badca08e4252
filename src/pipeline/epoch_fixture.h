// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: batches of an epoch without a pipeline.

#include <memory>
#include <utility>

#include "pipeline/epoch.h"

namespace feedline::pipeline {

// The next batch, whose rows can be taken. Its layout is the caller's to give.
inline Slot& open_batch(Epoch& epoch, std::shared_ptr<memory::Lease> lease = nullptr) {
  auto slot = Slot::make(epoch.most_rows(), epoch.prepares());
  slot->lease = std::move(lease);
  epoch.claim(slot);
  slot->place();
  slot->tickets.resume(0);
  return *slot;
}

}  // namespace feedline::pipeline
