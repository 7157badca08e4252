// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device/cuda/context.h"

namespace feedline::device::cuda {

// The primary contexts of all GPUs that this process may have used, regardless of their creators. Does not create any,
// because a context takes hundreds of megabytes of a GPU that another process may be using. One thread at a time.
class ContextsInUse {
 public:
  explicit ContextsInUse(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  // The current ones, by index.
  Result<std::vector<std::shared_ptr<const Context>>> list();

 private:
  const std::shared_ptr<const Driver> driver_;
  std::map<int, std::shared_ptr<const Context>> seen_;
};

}  // namespace feedline::device::cuda
