// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/page_locking.h"

#include <sys/resource.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "base/cpus.h"
#include "base/test_conditions.h"

namespace feedline::device::cuda {
namespace {

// On most systems, blocks allocated by CUDA do not count against this limit, so it is reported but not checked.
std::string lockable() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return "; RLIMIT_MEMLOCK is " + std::to_string(limit.rlim_cur) +
         " bytes (ulimit -l; in a container --ulimit memlock=-1)";
}

}  // namespace

std::uint64_t memory_left() { return base::memory_limits(base::test_conditions().machine_root).left_bytes(); }

Result<void> check_room(std::string_view what, std::uint64_t bytes, std::uint64_t room) {
  if (bytes <= room) return {};
  return storage_error(std::string(what) + " exceeds the " + std::to_string(room) +
                           " bytes left on the machine and in this process's control group; lower memory_budget "
                           "or batch_size",
                       ENOMEM);
}

PageLocking::PageLocking(std::shared_ptr<const Context> context, std::function<std::uint64_t()> room)
    : context_(std::move(context)), room_(std::move(room)) {}

Result<void> PageLocking::check_room(std::string_view what, std::uint64_t bytes) const {
  return cuda::check_room(what, bytes, room_());
}

std::string PageLocking::numbers() const {
  return "; the machine has " + std::to_string(room_()) + " bytes left" + lockable();
}

Result<std::byte*> PageLocking::allocate(std::string_view what, std::size_t bytes) {
  void* data = nullptr;
  const base::OnMemoryNode near(context_->memory_node().number);
  placed_ = near.outcome();
  auto got = context_->call("cuMemHostAlloc", context_->calls().host_alloc, &data, bytes, kPortable);
  if (got) return static_cast<std::byte*>(data);
  Error error = std::move(got).error();
  error.what = std::string(what) + ": " + error.what + numbers();
  return std::unexpected(std::move(error));
}

// Errors are ignored: the driver has been shut down, or the GPU is lost.
void PageLocking::free(std::byte* data) {
  if (!context_->driver().is_of_a_parent())
    std::ignore = context_->call("cuMemFreeHost", context_->calls().host_free, static_cast<void*>(data));
}

Result<void> PageLocking::lock(std::byte* data, std::size_t bytes) const {
  auto locked = context_->call("cuMemHostRegister", context_->calls().host_register, static_cast<void*>(data), bytes,
                               kPortableRegistration);
  if (locked) return {};
  Error error = std::move(locked).error();
  error.what += numbers();
  return std::unexpected(std::move(error));
}

Result<void> PageLocking::unlock(std::byte* data) const {
  return context_->call("cuMemHostUnregister", context_->calls().host_unregister, static_cast<void*>(data));
}

std::string PageLocking::explain_node() const {
  using enum base::OnMemoryNode::Outcome;
  const base::MemoryNode& node = context_->memory_node();
  if (!node.number) return "on a NUMA node that the kernel chooses: " + node.why;
  const std::string wanted = "the GPU's NUMA node " + std::to_string(*node.number);
  switch (placed_.load()) {
    case kPreferred:
      return "on " + wanted;
    case kGiven:
      return "according to the process's memory policy, not on " + wanted;
    case kRefused:
      return "on a NUMA node that the kernel chooses: this process may not request " + wanted;
    case kNotAsked:
      break;
  }
  return "on " + wanted + " once allocated";
}

}  // namespace feedline::device::cuda
