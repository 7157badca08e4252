// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/device.h"

namespace feedline::device {

// Opens the GPU with this index (as numbered by torch). Batches are filled in page-locked memory, and copied on a
// separate stream as soon as they are complete. Ready::let_wait() makes a stream of the training loop wait instead of
// the host. kConfig: no driver, or no such device; the message suggests a fix. Memory is only allocated when a batch
// needs it.
Result<std::shared_ptr<Device>> cuda_device(int index);

}  // namespace feedline::device
