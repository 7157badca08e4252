// SPDX-License-Identifier: Apache-2.0
#pragma once

// Page-locks memory that the caller owns, so that GPUs read it directly, and tracks GPU reads of it. A loader
// page-locks its own batches; this class is for batches in other memory. It never initialises CUDA, creates no context,
// and considers only GPUs that the process already uses.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "feedline/error.h"

namespace feedline {

// A point in the work of every GPU that the process used when it was created. One thread at a time.
class GpuMark {
 public:
  virtual ~GpuMark() = default;
  // Returns whether all previously queued work is complete, without waiting. Error: a GPU has failed, and its pending
  // reads are unknown.
  virtual Result<bool> is_past() = 0;
};

// One thread at a time. Must not be called in a process that was forked since it was opened: kConfig.
class PageLocks {
 public:
  // Returns whether GPUs may be used, without initialising anything. kConfig: there is no driver, or the driver is
  // older than CUDA 12.5 and cannot mark the work of all streams.
  static Result<void> check();
  // Requires: the process has initialised CUDA. kConfig: the errors of check(); or CUDA does not start, or was
  // initialised before a fork.
  static Result<std::unique_ptr<PageLocks>> open();
  // kStorage with ENOMEM: the machine or control group has less than `bytes` left; the message has the numbers.
  static Result<void> check_room(std::uint64_t bytes);
  virtual ~PageLocks() = default;  // locked memory stays locked until the process ends

  // Whether a GPU is in use for which memory can be locked. Chooses `preferred`, or else the first GPU in use; the
  // choice never changes.
  virtual Result<bool> has_gpu(int preferred) = 0;
  // Locks whole, resident pages for every GPU. Requires: has_gpu(). kStorage: the driver refused; the message has the
  // free memory and RLIMIT_MEMLOCK.
  virtual Result<void> lock(std::byte* data, std::size_t bytes) = 0;
  // Unlocks the memory that was locked at `data`. Requires: no GPU still reads it.
  virtual Result<void> unlock(std::byte* data) = 0;
  // Marks the completion of all work queued on the used GPUs so far. nullptr: not possible now, because a stream was
  // capturing a CUDA graph; that capture has failed.
  virtual Result<std::unique_ptr<GpuMark>> mark() = 0;
  // Whether the driver has shut down, as it does when the process exits; every call then fails.
  virtual bool has_ended() const = 0;
};

}  // namespace feedline
