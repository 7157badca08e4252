// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device/cuda/context.h"

namespace feedline::device::cuda {

// The primary contexts that this process has, whoever made them: of GPUs that it has given work to, or may have. None
// is made, as one takes hundreds of megabytes of a GPU that may be another process's. One thread at a time.
class ContextsInUse {
 public:
  explicit ContextsInUse(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  // Now, by their index.
  Result<std::vector<std::shared_ptr<const Context>>> list();

 private:
  const std::shared_ptr<const Driver> driver_;
  std::map<int, std::shared_ptr<const Context>> seen_;
};

}  // namespace feedline::device::cuda
