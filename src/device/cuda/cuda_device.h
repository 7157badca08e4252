// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/device.h"

namespace feedline::device {

// The GPU with that index, as torch counts them: batches are filled in page-locked memory, and copied on a stream of
// their own as soon as they settle. Ready::let_wait() has a stream of the training loop wait, and not the host.
// kConfig: no driver, or no such device; the message says what to do. No memory is taken before a batch needs it.
Result<std::shared_ptr<Device>> cuda_device(int index);

}  // namespace feedline::device
