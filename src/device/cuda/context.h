// SPDX-License-Identifier: Apache-2.0
#pragma once

// A GPU's primary context, which torch also uses, and events recorded in this context.

#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include "base/memory_node.h"
#include "device/cuda/driver.h"

namespace feedline::device::cuda {

// Thread-safe. The context lives as long as any object created in it.
class Context {
 public:
  // Opens the context of the device with this index (as numbered by torch). kConfig: there is no such device; the
  // message lists the available ones.
  static Result<std::shared_ptr<const Context>> open(std::shared_ptr<const Driver> driver, int index);
  // Returns whether any library in this process has created the device's primary context. Creates none.
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
  // The NUMA node closest to the GPU, where page-locked memory should be allocated.
  const base::MemoryNode& memory_node() const { return memory_node_; }

  // Runs `body`, which returns a Result, with this context current in the thread, and without invalidating a CUDA graph
  // capture by any thread.
  template <std::invocable Body>
  auto in(Body body) const -> decltype(body()) {
    int capture_mode = kRelaxedCapture;
    FEEDLINE_CHECK_OK(enter(capture_mode));
    auto made = body();
    if (auto left = leave(capture_mode); !left && made) return std::unexpected(std::move(left).error());
    return made;
  }
  // Calls a driver function; errors contain its name.
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

// A point in a GPU's queue of work. Thread-safe once recorded.
class Event {
 public:
  static Result<std::shared_ptr<Event>> make(std::shared_ptr<const Context> context);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  EventHandle handle() const { return handle_; }
  const Context& context() const { return *context_; }
  // Records the event after all work queued on the stream so far. Only once.
  Result<void> record(StreamHandle stream);
  // Records the event after all work queued in the whole context so far. Only once. Requires: the driver supports
  // cuCtxRecordEvent.
  Result<void> record_all();
  // Like record_all(), but returns false without recording if a stream is capturing a CUDA graph.
  Result<bool> record_all_unless_capturing();
  // Returns whether the GPU has reached the event. Does not block. An error means that the GPU has failed.
  Result<bool> is_past() const;
  Result<void> wait() const;
  Result<void> let_wait(StreamHandle stream) const;  // makes later work on the stream wait for the event

 private:
  Event(std::shared_ptr<const Context> context, EventHandle handle) : context_(std::move(context)), handle_(handle) {}

  const std::shared_ptr<const Context> context_;
  const EventHandle handle_;
};

}  // namespace feedline::device::cuda
