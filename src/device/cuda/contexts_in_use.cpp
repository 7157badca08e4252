// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/contexts_in_use.h"

namespace feedline::device::cuda {

Result<std::vector<std::shared_ptr<const Context>>> ContextsInUse::list() {
  FEEDLINE_CHECK_OK(driver_->check_process());
  std::vector<std::shared_ptr<const Context>> contexts;
  for (int index = 0; index < driver_->devices(); ++index) {
    FEEDLINE_TRY(const bool is_active, Context::is_active(*driver_, index));
    if (!is_active) continue;
    auto& context = seen_[index];
    if (context == nullptr) {
      FEEDLINE_TRY(context, Context::open(driver_, index));
    }
    contexts.push_back(context);
  }
  return contexts;
}

}  // namespace feedline::device::cuda
