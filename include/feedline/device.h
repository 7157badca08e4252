// SPDX-License-Identifier: Apache-2.0
#pragma once

// The location of a batch's arrays, and when they are ready.

#include <cstdint>

#include "feedline/error.h"

namespace feedline {

enum class DeviceKind : std::uint8_t {
  kHost,
  kCuda,
};

struct DevicePlace {
  DeviceKind kind = DeviceKind::kHost;
  int index = 0;  // index among the devices of its kind
  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};

// Completion of a device's work on a batch's memory, including by failure. Thread-safe; outlives device and loader.
class Ready {
 public:
  virtual ~Ready() = default;
  virtual bool is_ready() const = 0;      // never blocks
  virtual Result<void> wait() const = 0;  // Error: the device failed, and the arrays are invalid.
  // Makes a stream of the device wait instead of the caller: later work on the stream finds the arrays ready. Call this
  // function before using the batch. stream: CUDA's handle, or 1 for the default stream. Devices without streams block
  // the caller.
  virtual Result<void> let_wait(std::uintptr_t /*stream*/) const { return wait(); }
};

}  // namespace feedline
