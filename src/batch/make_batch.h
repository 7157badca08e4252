// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Batch that the user gets.

#include <cstdint>
#include <memory>
#include <vector>

#include "batch/batch_layout.h"
#include "batch/composed.h"
#include "feedline/device.h"
#include "feedline/loader.h"
#include "memory/allocator.h"

namespace feedline::batch {

// What a batch is made of. All of it lives as long as the batch's memory is held.
struct Parts {
  std::shared_ptr<const BatchLayout> layout;
  std::shared_ptr<memory::Lease> lease;  // of the dense fields; nullptr: there are none
  Composed composed = {};                // of the late ones
  DevicePlace device = {};
  std::array<std::shared_ptr<const Ready>, 2> ready = {};  // of the lease and of the composed arrays
};

// A complete batch, but for the rows in `bad`. Requires: as many samples as rows were composed.
Batch make_batch(Parts parts, std::uint64_t index, std::vector<std::uint64_t> samples, std::vector<BadRow> bad = {});

}  // namespace feedline::batch
