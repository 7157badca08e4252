// SPDX-License-Identifier: Apache-2.0
#include "feedline/page_locks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "device/cuda/contexts_in_use.h"
#include "device/cuda/page_locking.h"

namespace feedline {
namespace {

using device::cuda::Context;
using device::cuda::ContextsInUse;
using device::cuda::Driver;
using device::cuda::Event;
using device::cuda::PageLocking;

class Mark final : public GpuMark {
 public:
  explicit Mark(std::vector<std::shared_ptr<Event>> events) : events_(std::move(events)) {}

  Result<bool> is_past() override {
    while (!events_.empty()) {
      FEEDLINE_TRY(const bool past, events_.back()->is_past());
      if (!past) return false;
      events_.pop_back();
    }
    return true;
  }

 private:
  std::vector<std::shared_ptr<Event>> events_;  // of the GPUs that may not have passed it
};

class Locks final : public PageLocks {
 public:
  explicit Locks(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)), contexts_(driver_) {}

  Result<bool> has_gpu(int preferred) override {
    if (locking_ != nullptr) return true;
    FEEDLINE_TRY(const auto contexts, contexts_.list());
    if (contexts.empty()) return false;
    const auto found = std::ranges::find(contexts, preferred, &Context::index);
    locking_ = std::make_unique<PageLocking>(found == contexts.end() ? contexts.front() : *found);
    return true;
  }

  Result<void> lock(std::byte* data, std::size_t bytes) override {
    FEEDLINE_CHECK(locking_ != nullptr);
    return locking_->lock(data, bytes);
  }

  Result<void> unlock(std::byte* data) override {
    FEEDLINE_CHECK(locking_ != nullptr);
    return locking_->unlock(data);
  }

  Result<std::unique_ptr<GpuMark>> mark() override {
    FEEDLINE_TRY(const auto contexts, contexts_.list());
    std::vector<std::shared_ptr<Event>> events;
    for (const auto& context : contexts) {
      FEEDLINE_TRY(auto event, Event::make(context));
      FEEDLINE_TRY(const bool recorded, event->record_all_unless_capturing());
      if (!recorded) return nullptr;
      events.push_back(std::move(event));
    }
    return std::make_unique<Mark>(std::move(events));
  }

  bool has_ended() const override { return driver_->has_ended(); }

 private:
  const std::shared_ptr<const Driver> driver_;
  ContextsInUse contexts_;
  std::unique_ptr<PageLocking> locking_;  // of the selected GPU
};

}  // namespace

Result<void> PageLocks::check() { return Driver::look(); }

Result<std::unique_ptr<PageLocks>> PageLocks::open() {
  FEEDLINE_CHECK_OK(check());
  FEEDLINE_TRY(auto driver, Driver::open());
  return std::make_unique<Locks>(std::move(driver));
}

Result<void> PageLocks::check_room(std::uint64_t bytes) {
  return device::cuda::check_room("page-locked memory of " + std::to_string(bytes) + " bytes", bytes,
                                  device::cuda::memory_left());
}

}  // namespace feedline
