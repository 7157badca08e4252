// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/copy_stream.h"

#include <tuple>
#include <utility>

namespace feedline::device::cuda {

// Copies started by streams that have been destroyed; the next sweep() releases them.
struct CopyStream::LeftBehind {
  std::mutex mutex;
  Copies copies;
};

CopyStream::LeftBehind& CopyStream::of_process() {
  static auto& left = *new LeftBehind;  // never destroyed
  return left;
}

Result<std::unique_ptr<CopyStream>> CopyStream::make(std::shared_ptr<const Context> context) {
  StreamHandle handle = nullptr;
  FEEDLINE_CHECK_OK(
      context->call("cuStreamCreateWithPriority", context->calls().stream_create, &handle, kNonBlocking, kMostUrgent));
  return std::unique_ptr<CopyStream>(new CopyStream(std::move(context), handle));
}

CopyStream::~CopyStream() {
  if (context_->driver().is_of_a_parent()) {  // no calls are possible in a child, so GPU memory is not freed
    std::ignore = new Copies(std::move(copies_));
    return;
  }
  sweep();
  {
    const std::lock_guard lock(of_process().mutex);
    of_process().copies.splice(of_process().copies.end(), copies_);
  }
  // queued work still completes
  std::ignore = context_->call("cuStreamDestroy", context_->calls().stream_destroy, handle_);
}

Result<void> CopyStream::give(const memory::Lease& from, std::byte* to, const Then& then, Event& end) const {
  const auto& calls = context_->calls();
  FEEDLINE_CHECK_OK(context_->call("cuMemcpyHtoDAsync", calls.copy_to_device, reinterpret_cast<DeviceAddress>(to),
                                   static_cast<const void*>(from.data()), from.bytes(), handle_));
  Result<void> given = then.give ? context_->in([&] { return then.give(handle_); }) : Result<void>();
  if (given) given = end.record(handle_);
  if (!given) std::ignore = context_->call("cuStreamSynchronize", calls.stream_finish, handle_);  // instead of an event
  return given;
}

Result<std::shared_ptr<const Event>> CopyStream::copy(std::shared_ptr<memory::Lease> from, std::byte* to, Then then) {
  sweep();
  FEEDLINE_TRY(std::shared_ptr<Event> end, Event::make(context_));
  const std::lock_guard lock(mutex_);
  FEEDLINE_CHECK_OK(give(*from, to, then, *end));
  copies_.push_back({end, std::move(from), std::move(then.needs)});
  return end;
}

// If the state is unknown, for example because the GPU is lost, the memory is not reused.
bool CopyStream::is_done(const Copy& copy) {
  const auto past = copy.end->is_past();
  return past && *past;
}

void CopyStream::sweep() {
  Copies done, others_done;  // freed outside the lock
  {
    const std::lock_guard lock(mutex_);
    // they end in order
    while (!copies_.empty() && is_done(copies_.front())) done.splice(done.end(), copies_, copies_.begin());
  }
  const std::lock_guard lock(of_process().mutex);
  Copies& others = of_process().copies;
  for (auto copy = others.begin(); copy != others.end();) {
    const auto next = std::next(copy);
    if (is_done(*copy)) others_done.splice(others_done.end(), others, copy);
    copy = next;
  }
}

std::size_t CopyStream::left_behind() {
  const std::lock_guard lock(of_process().mutex);
  return of_process().copies.size();
}

}  // namespace feedline::device::cuda
