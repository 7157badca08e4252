// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device/cuda/context.h"

namespace feedline::device::cuda {

// The primary contexts of all GPUs that this process may have used, whichever library created them. This class does not
// create contexts, because a context needs hundreds of megabytes of GPU memory, and another process may be using the
// GPU. Used by one thread at a time.
class ContextsInUse {
 public:
  explicit ContextsInUse(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  // Returns the existing contexts, ordered by device index.
  Result<std::vector<std::shared_ptr<const Context>>> list();

 private:
  const std::shared_ptr<const Driver> driver_;
  std::map<int, std::shared_ptr<const Context>> seen_;
};

}  // namespace feedline::device::cuda
