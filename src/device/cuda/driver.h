// SPDX-License-Identifier: Apache-2.0
#pragma once

// CUDA's driver library, opened at run time: the engine is the same file, and works the same, without it.

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "device/cuda/driver_calls.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

// Thread-safe. Opened once per process and never closed: the driver leaves threads and exit handlers.
class Driver {
 public:
  // Opens the library named by FEEDLINE_CUDA_DRIVER, or libcuda.so.1. kConfig: it is missing, too old, does not start,
  // or has no device; the message suggests a fix. A failure is retried at the next call.
  static Result<std::shared_ptr<const Driver>> open();

  // Checks that open() would find a library with every call, including those of later drivers. Starts nothing. kConfig:
  // it would not; the message does not mention loaders.
  static Result<void> look();

  const DriverCalls& calls() const { return calls_; }
  int version() const { return version_; }  // supported version of CUDA: 1000 * major + 10 * minor
  int devices() const { return devices_; }
  // The value of CUDA_VISIBLE_DEVICES when CUDA started, which reads it once. Empty if not set.
  const std::string& visible() const { return visible_; }

  // Converts a call's status: returns nothing, or an error that names the call. kStorage, with ENOMEM if out of memory.
  Result<void> check(std::string_view call, int status) const;
  // Returns kConfig in a forked child: CUDA does not work there, and must not be called.
  Result<void> check_process() const;
  bool is_of_a_parent() const;
  bool has_ended() const;  // it has shut down, as at process exit

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
