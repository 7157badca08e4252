// SPDX-License-Identifier: Apache-2.0
#pragma once

// Creates the Batch that users receive.

#include <cstdint>
#include <memory>
#include <vector>

#include "batch/batch_layout.h"
#include "batch/composed.h"
#include "feedline/device.h"
#include "feedline/loader.h"
#include "memory/allocator.h"

namespace feedline::batch {

// The parts of a batch. All parts must live as long as the batch's memory.
struct Parts {
  std::shared_ptr<const BatchLayout> layout;
  std::shared_ptr<memory::Lease> lease;  // of the dense fields; nullptr if there are none
  Composed composed = {};                // of the variable-size ones
  DeviceLocation device = {};
  std::array<std::shared_ptr<const Ready>, 2> ready = {};  // of the lease and of the composed arrays
};

// Creates a batch, complete except for the rows in `bad`. Requires: the number of samples equals the number of composed
// rows.
Batch make_batch(Parts parts, std::uint64_t index, std::vector<std::uint64_t> samples, std::vector<BadRow> bad = {});

}  // namespace feedline::batch
