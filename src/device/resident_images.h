// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "feedline/error.h"

namespace feedline::device {

// Images cached in device memory, as sources of batches (Finish::resident). Each image is written once and remains
// valid as long as this object exists; batches in transfer hold a reference to this object. Thread-safe.
class ResidentImages {
 public:
  ResidentImages() = default;
  virtual ~ResidentImages() = default;
  ResidentImages(const ResidentImages&) = delete;
  ResidentImages& operator=(const ResidentImages&) = delete;

  // Copies an image and returns its device address, which batches that begin afterwards may use. `pixels` may be freed
  // when this returns. kStorage with ENOMEM: out of memory; the message reports the sizes.
  virtual Result<std::uint64_t> store(std::span<const std::byte> pixels) = 0;
  virtual std::uint64_t bytes() const = 0;  // device memory used, including reserved memory
};

}  // namespace feedline::device
