// SPDX-License-Identifier: Apache-2.0
#pragma once

// The location of a batch's arrays, and the means to wait until they are ready.

#include <cstdint>

#include "feedline/error.h"

namespace feedline {

enum class DeviceKind : std::uint8_t {
  kHost,
  kCuda,
};

struct DeviceLocation {
  DeviceKind kind = DeviceKind::kHost;
  int index = 0;  // index among the devices of its kind
  friend bool operator==(const DeviceLocation&, const DeviceLocation&) = default;
};

// Signals that a device has completed its work on a batch's memory, or that it has failed. Thread-safe. May outlive the
// device and the loader.
class Ready {
 public:
  virtual ~Ready() = default;
  virtual bool is_ready() const = 0;      // never blocks
  virtual Result<void> wait() const = 0;  // fails if the device failed; the arrays are then invalid
  // Makes later work on a stream of the device wait for the arrays, without blocking the caller. Call this function
  // before using the batch. `stream` is a CUDA stream handle, or 1 for the default stream. On devices without streams,
  // blocks the caller.
  virtual Result<void> let_wait(std::uintptr_t /*stream*/) const { return wait(); }
};

}  // namespace feedline
