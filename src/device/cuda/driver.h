// SPDX-License-Identifier: Apache-2.0
#pragma once

// CUDA's driver library, opened at run time: the engine works the same, and is the same file, where there is none.

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "device/cuda/driver_calls.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

// Thread-safe. Opened once in a process and never closed: the driver leaves threads and exit handlers behind.
class Driver {
 public:
  // The library that FEEDLINE_CUDA_DRIVER names, or else libcuda.so.1. kConfig: there is none, it is too early, it does
  // not start, or it has no device; the message says what to do. A failure is tried again at the next call.
  static Result<std::shared_ptr<const Driver>> open();

  // Would open() find a library with every call, those of later drivers too? Begins nothing. kConfig: no; the message
  // does not speak of loaders.
  static Result<void> look();

  const DriverCalls& calls() const { return calls_; }
  int version() const { return version_; }  // of CUDA that it has: 1000 * major + 10 * minor
  int devices() const { return devices_; }
  // What CUDA was started with: it reads CUDA_VISIBLE_DEVICES once. Empty: not set.
  const std::string& visible() const { return visible_; }

  // What a call that gave `status` means: nothing, or an error that names the call. kStorage, with ENOMEM where there
  // is no memory.
  Result<void> check(std::string_view call, int status) const;
  // kConfig in a process that was forked since: CUDA does not go on there, and must not be called.
  Result<void> check_process() const;
  bool is_of_a_parent() const;
  bool has_ended() const;  // it has shut down, as it does when the process ends

 private:
  Driver() = default;
  static Result<std::shared_ptr<const Driver>> load(const std::string& file);
  Result<void> look_up(const std::string& file);
  Result<void> start();

  DriverCalls calls_;
  int version_ = 0;
  int devices_ = 0;
  std::string visible_;
  pid_t pid_ = 0;
};

}  // namespace feedline::device::cuda
