// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "feedline/error.h"

namespace feedline::device {

// Images cached in device memory, to make batches from (Finish::resident). Each is written once and is valid as long as
// this object, which batches in transfer hold. Thread-safe.
class ResidentImages {
 public:
  ResidentImages() = default;
  virtual ~ResidentImages() = default;
  ResidentImages(const ResidentImages&) = delete;
  ResidentImages& operator=(const ResidentImages&) = delete;

  // Copies an image and returns its device address: batches that begin from now on may use it. `pixels` may be freed at
  // once. kStorage with ENOMEM: out of memory; the message has the numbers.
  virtual Result<std::uint64_t> store(std::span<const std::byte> pixels) = 0;
  virtual std::uint64_t bytes() const = 0;  // device memory used, including reserved memory
};

}  // namespace feedline::device
