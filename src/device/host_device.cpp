// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "base/check.h"
#include "device/device.h"
#include "device/host_allocator.h"

namespace feedline::device {
namespace {

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  bool is_host() const override { return true; }
  std::shared_ptr<memory::Allocator> allocator() override { return allocator_; }
  std::shared_ptr<memory::Allocator> variable_allocator() override { return variable_allocator_; }
  Result<Begun> begin(std::shared_ptr<memory::Lease> filled) override { return Begun{std::move(filled), nullptr}; }

 private:
  std::shared_ptr<HostAllocator> allocator_ = std::make_shared<HostAllocator>();
  // separate, because blocks of other sizes would replace the cached one
  std::shared_ptr<HostAllocator> variable_allocator_ = std::make_shared<HostAllocator>();
};

}  // namespace

Result<Begun> Device::begin_making(std::shared_ptr<memory::Lease> /*filled*/, const Finish& /*finish*/) {
  FEEDLINE_CHECK(!"this device does not convert elements");
}

Result<std::shared_ptr<ResidentImages>> Device::make_resident_images(std::uint64_t /*bytes*/) {
  return config_error("the device \"" + std::string(name()) + "\" has no separate memory in which to cache images");
}

Result<std::shared_ptr<ImageDecoder>> Device::decode_images() {
  return config_error("the device \"" + std::string(name()) + "\" cannot decode images");
}

std::shared_ptr<Device> host_device() { return std::make_shared<HostDevice>(); }

}  // namespace feedline::device
