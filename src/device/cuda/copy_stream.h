// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stream on which batches go to a GPU, beside those that the training loop computes on.

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "device/cuda/context.h"
#include "memory/allocator.h"

namespace feedline::device::cuda {

// Thread-safe. It may end while copies are on their way: what they read from is kept until they are done, by the
// process where nobody else is left.
class CopyStream {
 public:
  static Result<std::unique_ptr<CopyStream>> make(std::shared_ptr<const Context> context);
  ~CopyStream();
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  StreamHandle handle() const { return handle_; }
  // What else the GPU has to do, given to it behind the copy with its context the thread's, before anybody else's work;
  // and what must be there until that is done.
  struct Then {
    std::function<Result<void>(StreamHandle)> give;  // empty: nothing
    std::shared_ptr<const void> needs;
  };
  // Begins to copy all of `from` to `to` on the GPU, and gives the event of the end of that and what follows. An error:
  // nothing was begun, or the GPU has failed.
  Result<std::shared_ptr<const Event>> copy(std::shared_ptr<memory::Lease> from, std::byte* to, Then then = {});
  // Lets go of what no copy reads any more, here and of streams that have ended. Waits for nothing.
  void sweep();

  static std::size_t left_behind();  // copies on their way whose stream has ended

 private:
  struct Copy {
    std::shared_ptr<const Event> end;
    std::shared_ptr<memory::Lease> from;
    std::shared_ptr<const void> needs;
  };
  using Copies = std::list<Copy>;
  struct LeftBehind;

  CopyStream(std::shared_ptr<const Context> context, StreamHandle handle)
      : context_(std::move(context)), handle_(handle) {}
  static LeftBehind& of_process();
  static bool is_done(const Copy& copy);
  Result<void> give(const memory::Lease& from, std::byte* to, const Then& then, Event& end) const;

  const std::shared_ptr<const Context> context_;
  const StreamHandle handle_;
  std::mutex mutex_;
  Copies copies_;
};

}  // namespace feedline::device::cuda
