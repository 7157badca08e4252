// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where batches end up. The host device hands the memory over as it is; a device with memory of its own copies. Both
// keep the same contract, so everything before them runs the same with and without a GPU.

#include <memory>
#include <string_view>

#include "feedline/error.h"
#include "memory/allocator.h"

namespace feedline::device {

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // What batches are filled in: memory that this device takes over or copies from fastest.
  virtual std::shared_ptr<memory::Allocator> allocator() = 0;
  // Takes a filled batch; the result may be read by the training loop at once.
  virtual Result<std::shared_ptr<memory::Lease>> deliver(std::shared_ptr<memory::Lease> filled) = 0;
};

std::shared_ptr<Device> host_device();

}  // namespace feedline::device
