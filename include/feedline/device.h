// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the arrays of a batch are, and when they are there.

#include <cstdint>

#include "feedline/error.h"

namespace feedline {

enum class DeviceKind : std::uint8_t {
  kHost,
  kCuda,
};

struct DevicePlace {
  DeviceKind kind = DeviceKind::kHost;
  int index = 0;  // among the devices of its kind
  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};

// The end of a device's work on a batch's memory, however it ends. Any thread; outlives device and loader.
class Ready {
 public:
  virtual ~Ready() = default;
  virtual bool is_ready() const = 0;      // has it ended? Waits for nothing
  virtual Result<void> wait() const = 0;  // until it has; an error: the device has failed, and the arrays hold nothing
  // Has a stream of the device wait in place of the caller: what it is given from now on finds the arrays there. By
  // whoever uses the batch, before he does. stream: the device's number for it; CUDA's handle, or 1 for the default
  // stream. Devices without streams wait.
  virtual Result<void> let_wait(std::uintptr_t /*stream*/) const { return wait(); }
};

}  // namespace feedline
