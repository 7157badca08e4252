// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory that the caller owns, page-locked so that GPUs read it where it lies, and what GPUs still read. A loader does
// this for its own batches; here it is for memory that batches come in otherwise. CUDA is never begun and no context is
// made: only the GPUs that the process uses already count.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "feedline/error.h"

namespace feedline {

// A moment in the work of every GPU that the process used by then. One thread at a time.
class GpuMark {
 public:
  virtual ~GpuMark() = default;
  // Have they done all that they had been given? Asks, and waits for nothing. An error: a GPU has failed, and nobody
  // can say what it reads.
  virtual Result<bool> is_past() = 0;
};

// One thread at a time. Must not be called in a process that was forked since it was opened: kConfig.
class PageLocks {
 public:
  // Could there be any? Begins nothing. kConfig: there is no driver, or none that can mark the work of all streams,
  // which came with CUDA 12.5.
  static Result<void> check();
  // Requires: the process has begun CUDA. kConfig: see check(); or CUDA does not start, or was begun before a fork.
  static Result<std::unique_ptr<PageLocks>> open();
  // kStorage with ENOMEM: machine and control group have less left than `bytes`; the message has the numbers.
  static Result<void> check_room(std::uint64_t bytes);
  virtual ~PageLocks() = default;  // what is locked stays so until the process ends

  // Is there a GPU to lock memory for: `preferred`, or else the first in use? The first one found stays.
  virtual Result<bool> has_gpu(int preferred) = 0;
  // Locks whole pages, which are there, for every GPU. Requires: has_gpu(). kStorage: the driver did not; the message
  // has what the machine has left, and RLIMIT_MEMLOCK.
  virtual Result<void> lock(std::byte* data, std::size_t bytes) = 0;
  // What began at `data`. Requires: no GPU reads it any more.
  virtual Result<void> unlock(std::byte* data) = 0;
  // After all that the GPUs in use have been given until now. nullptr: not now, as some stream captures a CUDA graph,
  // which has failed for that.
  virtual Result<std::unique_ptr<GpuMark>> mark() = 0;
  // Has the driver shut down, as it does when the process ends? Then every call fails.
  virtual bool has_ended() const = 0;
};

}  // namespace feedline
