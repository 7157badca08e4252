// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/context.h"

#include <array>
#include <cstdlib>
#include <tuple>

#include "base/test_conditions.h"

namespace feedline::device::cuda {
namespace {

// Lists the available devices, for the error about a missing device.
std::string those_there(const Driver& driver, std::string_view first_name) {
  const int count = driver.devices();
  std::string text =
      count == 1 ? "the only device is cuda:0" : "the devices are cuda:0 to cuda:" + std::to_string(count - 1);
  const char* now = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string visible = now == nullptr ? "" : now;
  if (visible != driver.visible())
    text += "; CUDA_VISIBLE_DEVICES is \"" + visible + "\" now and was \"" + driver.visible() +
            "\" when CUDA started, which reads it once: set it before the process starts";
  else if (first_name.find(" MIG ") != std::string_view::npos)
    text +=
        "; it is a GPU partition (MIG), of which a process sees only one: select it by CUDA_VISIBLE_DEVICES=MIG-UUID, "
        "as "
        "listed by nvidia-smi -L";
  else if (!visible.empty())
    text += "; CUDA_VISIBLE_DEVICES is \"" + visible + "\", and devices are numbered within it";
  return text;
}

std::string name_of(const Driver& driver, DeviceNumber device) {
  std::array<char, 128> name{};
  if (driver.calls().device_name(name.data(), static_cast<int>(name.size()), device) != kSuccess) return "a GPU";
  return name.data();
}

std::string pci_bus_id(const Driver& driver, DeviceNumber device) {
  std::array<char, 32> id{};
  if (driver.calls().pci_bus_id(id.data(), static_cast<int>(id.size()), device) != kSuccess) return "";
  return id.data();
}

}  // namespace

Result<std::shared_ptr<const Context>> Context::open(std::shared_ptr<const Driver> driver, int index) {
  FEEDLINE_CHECK_OK(driver->check_process());
  if (index < 0 || index >= driver->devices()) {
    return config_error("device: there is no cuda:" + std::to_string(index) + ": " +
                        those_there(*driver, name_of(*driver, 0)));
  }
  std::shared_ptr<Context> context(new Context(std::move(driver), index));
  FEEDLINE_CHECK_OK(context->retain());
  return std::shared_ptr<const Context>(std::move(context));
}

Result<bool> Context::is_active(const Driver& driver, int index) {
  DeviceNumber device = 0;
  unsigned flags = 0;
  int is_active = 0;
  FEEDLINE_CHECK_OK(driver.check("cuDeviceGet", driver.calls().device(&device, index)));
  FEEDLINE_CHECK_OK(
      driver.check("cuDevicePrimaryCtxGetState", driver.calls().primary_state(device, &flags, &is_active)));
  return is_active != 0;
}

Result<void> Context::retain() {
  FEEDLINE_CHECK_OK(driver_->check("cuDeviceGet", calls().device(&device_, index_)));
  name_ = name_of(*driver_, device_);
  memory_node_ = base::memory_node_of(pci_bus_id(*driver_, device_), base::test_conditions().machine_root);
  return driver_->check("cuDevicePrimaryCtxRetain", calls().primary_retain(&handle_, device_));
}

Context::~Context() {
  if (handle_ != nullptr && !driver_->is_of_a_parent()) calls().primary_release(device_);
}

Result<void> Context::enter(int& capture_mode) const {
  FEEDLINE_CHECK_OK(driver_->check_process());
  FEEDLINE_CHECK_OK(driver_->check("cuThreadExchangeStreamCaptureMode", calls().capture_mode(&capture_mode)));
  auto pushed = driver_->check("cuCtxPushCurrent", calls().push(handle_));
  if (!pushed) calls().capture_mode(&capture_mode);
  return pushed;
}

Result<void> Context::leave(int capture_mode) const {
  ContextHandle popped = nullptr;
  auto left = driver_->check("cuCtxPopCurrent", calls().pop(&popped));
  const int status = calls().capture_mode(&capture_mode);
  if (!left) return left;
  return driver_->check("cuThreadExchangeStreamCaptureMode", status);
}

// ---- events ----

Result<std::shared_ptr<Event>> Event::make(std::shared_ptr<const Context> context) {
  EventHandle handle = nullptr;
  FEEDLINE_CHECK_OK(context->call("cuEventCreate", context->calls().event_create, &handle, kDisableTiming));
  return std::shared_ptr<Event>(new Event(std::move(context), handle));
}

// The event may still be pending: the driver frees it when it completes.
Event::~Event() {
  if (!context_->driver().is_of_a_parent())
    std::ignore = context_->call("cuEventDestroy", context_->calls().event_destroy, handle_);
}

Result<void> Event::record(StreamHandle stream) {
  return context_->call("cuEventRecord", context_->calls().event_record, handle_, stream);
}

Result<void> Event::record_all() {
  return context_->call("cuCtxRecordEvent", context_->calls().context_record, context_->handle(), handle_);
}

Result<bool> Event::record_all_unless_capturing() {
  return context_->in([&]() -> Result<bool> {
    const int status = context_->calls().context_record(context_->handle(), handle_);
    if (status == kCaptureUnsupported) return false;
    FEEDLINE_CHECK_OK(context_->driver().check("cuCtxRecordEvent", status));
    return true;
  });
}

Result<bool> Event::is_past() const {
  return context_->in([&]() -> Result<bool> {
    const int status = context_->calls().event_query(handle_);
    if (status == kNotReady) return false;
    FEEDLINE_CHECK_OK(context_->driver().check("cuEventQuery", status));
    return true;
  });
}

Result<void> Event::wait() const { return context_->call("cuEventSynchronize", context_->calls().event_wait, handle_); }

Result<void> Event::let_wait(StreamHandle stream) const {
  return context_->call("cuStreamWaitEvent", context_->calls().stream_wait, stream, handle_, 0u);
}

}  // namespace feedline::device::cuda
