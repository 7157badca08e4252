// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "device/cuda/copy_stream.h"
#include "device/cuda/device_memory.h"
#include "device/cuda/pinned_allocator.h"

namespace feedline::device {
namespace {

using namespace cuda;

// Of the default stream also where another one is captured that is ordered with it.
Result<bool> is_capturing(const Context& context, StreamHandle stream) {
  return context.in([&]() -> Result<bool> {
    int capturing = 0;
    const int status = context.calls().stream_capturing(stream, &capturing);
    if (status == kCaptureImplicit) return true;
    FEEDLINE_CHECK_OK(context.driver().check("cuStreamIsCapturing", status));
    return capturing != 0;
  });
}

// A batch's way to the GPU.
class Arrival final : public Ready {
 public:
  Arrival(std::shared_ptr<const Event> end, std::shared_ptr<DeviceMemory> memory)
      : end_(std::move(end)), memory_(std::move(memory)) {}

  bool is_ready() const override {
    if (is_ready_) return true;
    const auto past = end_->is_past();
    if (past && !*past) return false;
    if (past) is_ready_ = true;
    return true;  // it has ended, and wait() tells how
  }
  Result<void> wait() const override {
    if (is_ready_) return {};
    FEEDLINE_CHECK_OK(end_->wait());
    is_ready_ = true;
    return {};
  }
  // A stream that is captured as a CUDA graph must not wait for what lies outside of it, and the graph is to find the
  // data there each time that it runs: so the host waits.
  Result<void> let_wait(std::uintptr_t stream_number) const override {
    const auto stream = reinterpret_cast<StreamHandle>(stream_number);
    const Context& context = end_->context();
    FEEDLINE_TRY(const bool capturing, is_capturing(context, stream));
    if (capturing) return wait();
    if (!is_ready_) FEEDLINE_CHECK_OK(end_->let_wait(stream));
    return memory_->mark(stream);
  }

 private:
  const std::shared_ptr<const Event> end_;
  const std::shared_ptr<DeviceMemory> memory_;
  mutable std::atomic<bool> is_ready_ = false;
};

// What a stream has read goes back; blocks that outlive their device have none to ask.
std::function<void()> recall_of(const std::shared_ptr<CopyStream>& stream) {
  return [weak = std::weak_ptr<CopyStream>(stream)] {
    if (const auto alive = weak.lock()) alive->sweep();
  };
}

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<const Context> context, std::shared_ptr<CopyStream> stream)
      : context_(std::move(context)),
        stream_(std::move(stream)),
        name_("cuda:" + std::to_string(context_->index())),
        pinned_(std::make_shared<PinnedAllocator>(context_, recall_of(stream_))),
        late_pinned_(std::make_shared<PinnedAllocator>(context_, recall_of(stream_))),
        memory_(std::make_shared<DeviceMemory>(context_, stream_->handle())) {}

  std::string_view name() const override { return name_; }
  DevicePlace place() const override { return {DeviceKind::kCuda, context_->index()}; }
  bool is_host() const override { return false; }
  std::string explain() const override;
  std::shared_ptr<memory::Allocator> allocator() override { return pinned_; }
  std::shared_ptr<memory::Allocator> late_allocator() override { return late_pinned_; }
  Result<Begun> begin(std::shared_ptr<memory::Lease> filled) override {
    FEEDLINE_TRY(auto copy, memory::Lease::take(memory_, filled->bytes()));
    FEEDLINE_TRY(auto end, stream_->copy(std::move(filled), copy->data()));
    return Begun{std::move(copy), std::make_shared<Arrival>(std::move(end), memory_)};
  }

 private:
  const std::shared_ptr<const Context> context_;
  const std::shared_ptr<CopyStream> stream_;
  const std::string name_;
  const std::shared_ptr<PinnedAllocator> pinned_;
  const std::shared_ptr<PinnedAllocator> late_pinned_;
  const std::shared_ptr<DeviceMemory> memory_;
};

std::string CudaDevice::explain() const {
  std::string text = name_ + " (" + context_->name() +
                     "), copied from page-locked memory on a stream of its own as soon as a batch is filled; the "
                     "stream that takes it waits, not the host";
  if (context_->calls().context_record == nullptr)
    text +=
        "; this driver cannot mark the work of all streams (CUDA 12.5 can), so a batch that is used on another "
        "stream than the one that took it must be held until that is done";
  return text;
}

}  // namespace

Result<std::shared_ptr<Device>> cuda_device(int index) {
  FEEDLINE_TRY(auto driver, Driver::open());
  FEEDLINE_TRY(auto context, Context::open(std::move(driver), index));
  FEEDLINE_TRY(auto stream, CopyStream::make(context));
  return std::make_shared<CudaDevice>(std::move(context), std::move(stream));
}

}  // namespace feedline::device
