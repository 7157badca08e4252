// SPDX-License-Identifier: Apache-2.0
#pragma once

// Page-locks memory that the caller owns, so that GPUs can read it directly, and tracks GPU reads of it. A loader
// page-locks its own batches; this class is for batches in other memory. PageLocks does not initialise CUDA or create
// contexts, and considers only GPUs that the process already uses.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "feedline/error.h"

namespace feedline {

// Marks a point in the work of every GPU that the process used when the mark was created. Not thread-safe.
class GpuMark {
 public:
  virtual ~GpuMark() = default;
  // Returns whether all work queued before the mark is complete. Does not wait. Fails if a GPU has failed, because the
  // state of its reads is then unknown.
  virtual Result<bool> is_past() = 0;
};

// Not thread-safe. In a process that was forked after open(), all calls fail with kConfig.
class PageLocks {
 public:
  // Checks whether page locks are supported, without initialising CUDA. Fails with kConfig if there is no driver, or if
  // the driver is older than CUDA 12.5 and cannot mark the work of all streams.
  static Result<void> check();
  // Requires: the process has initialised CUDA. Fails with kConfig like check(), or if CUDA does not start or was
  // initialised before a fork.
  static Result<std::unique_ptr<PageLocks>> open();
  // Fails with kStorage and ENOMEM if the machine or the control group has less than `bytes` of memory left. The
  // message contains the numbers.
  static Result<void> check_room(std::uint64_t bytes);
  virtual ~PageLocks() = default;  // locked memory stays locked until the process ends

  // Returns whether the process uses a GPU for which memory can be locked. Selects `preferred` if the process uses that
  // GPU, otherwise the first GPU in use. The selection never changes.
  virtual Result<bool> has_gpu(int preferred) = 0;
  // Locks memory for every GPU. `data` and `bytes` must cover whole, resident pages. Requires: has_gpu(). Fails with
  // kStorage if the driver refuses; the message contains the free memory and RLIMIT_MEMLOCK.
  virtual Result<void> lock(std::byte* data, std::size_t bytes) = 0;
  // Unlocks the memory that was locked at `data`. Requires: no GPU still reads the memory.
  virtual Result<void> unlock(std::byte* data) = 0;
  // Creates a mark after all work that is queued on the GPUs in use. Returns nullptr if a stream was capturing a CUDA
  // graph; the call has made that capture fail.
  virtual Result<std::unique_ptr<GpuMark>> mark() = 0;
  // Whether the driver has shut down, which happens when the process exits. After the shutdown, all other calls fail.
  virtual bool has_ended() const = 0;
};

}  // namespace feedline
