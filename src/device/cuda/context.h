// SPDX-License-Identifier: Apache-2.0
#pragma once

// A GPU's primary context, which is torch's as well, and the events that are recorded in it.

#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include "base/memory_node.h"
#include "device/cuda/driver.h"

namespace feedline::device::cuda {

// For tests: the root of a made machine's /proc and /sys. Empty: this one's.
std::string made_machine();

// Thread-safe. Lives as long as anything that was made in it.
class Context {
 public:
  // Of the device with that index, as torch counts them. kConfig: there is none; the message says which there are.
  static Result<std::shared_ptr<const Context>> open(std::shared_ptr<const Driver> driver, int index);
  // Has this process that context, whoever made it? Makes none.
  static Result<bool> is_active(const Driver& driver, int index);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const DriverCalls& calls() const { return driver_->calls(); }
  ContextHandle handle() const { return handle_; }
  int index() const { return index_; }
  const std::string& name() const { return name_; }  // of the GPU
  DeviceNumber device() const { return device_; }
  // That the GPU reaches without crossing to another CPU: page-locked memory belongs there.
  const base::MemoryNode& memory_node() const { return memory_node_; }

  // Runs `body`, which gives a Result, with this context as the thread's, and so that no CUDA graph that any thread
  // captures is spoiled by what it calls.
  template <std::invocable Body>
  auto in(Body body) const -> decltype(body()) {
    int capture_mode = kRelaxedCapture;
    FEEDLINE_CHECK_OK(enter(capture_mode));
    auto made = body();
    if (auto left = leave(capture_mode); !left && made) return std::unexpected(std::move(left).error());
    return made;
  }
  // One call, by its name.
  template <typename... Parameters, typename... Arguments>
  Result<void> call(const char* call_name, int (*function)(Parameters...), Arguments... arguments) const {
    return in([&]() -> Result<void> { return driver_->check(call_name, function(arguments...)); });
  }

 private:
  Context(std::shared_ptr<const Driver> driver, int index) : driver_(std::move(driver)), index_(index) {}
  Result<void> retain();
  Result<void> enter(int& capture_mode) const;
  Result<void> leave(int capture_mode) const;

  const std::shared_ptr<const Driver> driver_;
  const int index_;
  DeviceNumber device_ = 0;
  ContextHandle handle_ = nullptr;
  std::string name_;
  base::MemoryNode memory_node_;
};

// A moment in a GPU's work. Thread-safe once it is recorded.
class Event {
 public:
  static Result<std::shared_ptr<Event>> make(std::shared_ptr<const Context> context);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  EventHandle handle() const { return handle_; }
  const Context& context() const { return *context_; }
  // After what the stream was given until now. Once.
  Result<void> record(StreamHandle stream);
  // After what the whole context was given until now. Once. Requires: the driver has the call.
  Result<void> record_all();
  // The same; false: some stream captures a CUDA graph, and nothing was recorded.
  Result<bool> record_all_unless_capturing();
  // Is the GPU past it? Waits for nothing. An error: the GPU has failed.
  Result<bool> is_past() const;
  Result<void> wait() const;
  Result<void> let_wait(StreamHandle stream) const;  // what it is given from now on

 private:
  Event(std::shared_ptr<const Context> context, EventHandle handle) : context_(std::move(context)), handle_(handle) {}

  const std::shared_ptr<const Context> context_;
  const EventHandle handle_;
};

}  // namespace feedline::device::cuda
