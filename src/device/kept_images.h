// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "feedline/error.h"

namespace feedline::device {

// Images that a device keeps in its own memory, for batches to be made of (Finish::kept). Each is written once, and
// stays as long as this object, which batches on their way hold. Thread-safe.
class KeptImages {
 public:
  KeptImages() = default;
  virtual ~KeptImages() = default;
  KeptImages(const KeptImages&) = delete;
  KeptImages& operator=(const KeptImages&) = delete;

  // Takes a copy, and gives its address on the device: a batch that begins from now on can be made of it. `pixels` may
  // go at once. kStorage with ENOMEM: there is no more room, and the message has the numbers.
  virtual Result<std::uint64_t> keep(std::span<const std::byte> pixels) = 0;
  virtual std::uint64_t bytes() const = 0;  // of the device's memory that this takes, with what is reserved
};

}  // namespace feedline::device
