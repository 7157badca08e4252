// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stream that copies batches to a GPU, separate from the training loop's streams.

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "device/cuda/context.h"
#include "memory/allocator.h"

namespace feedline::device::cuda {

// Thread-safe. The stream may be destroyed while copies are in flight. The source memory of copies is retained until
// they complete, even if the stream has been destroyed.
class CopyStream {
 public:
  static Result<std::unique_ptr<CopyStream>> make(std::shared_ptr<const Context> context);
  ~CopyStream();
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  StreamHandle handle() const { return handle_; }
  // Further GPU work, which is queued directly after the copy with the context current, and the objects that this work
  // needs until it is complete.
  struct Then {
    std::function<Result<void>(StreamHandle)> give;  // may be empty
    std::shared_ptr<const void> needs;
  };
  // Starts copying all of `from` to the GPU address `to`, and returns an event that completes after the copy and the
  // further work. An error means that nothing was started, or the GPU has failed.
  Result<std::shared_ptr<const Event>> copy(std::shared_ptr<memory::Lease> from, std::byte* to, Then then = {});
  // Releases memory that no copy reads any more, including memory read by copies from destroyed streams. Does not
  // block.
  void sweep();

  static std::size_t left_behind();  // copies in flight whose stream was destroyed

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
