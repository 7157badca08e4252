// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "device/device.h"
#include "device/host_allocator.h"

namespace feedline::device {
namespace {

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  std::shared_ptr<memory::Allocator> allocator() override { return allocator_; }
  Result<std::shared_ptr<memory::Lease>> deliver(std::shared_ptr<memory::Lease> filled) override { return filled; }

 private:
  std::shared_ptr<HostAllocator> allocator_ = std::make_shared<HostAllocator>();
};

}  // namespace

std::shared_ptr<Device> host_device() { return std::make_shared<HostDevice>(); }

}  // namespace feedline::device
