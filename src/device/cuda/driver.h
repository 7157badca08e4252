// SPDX-License-Identifier: Apache-2.0
#pragma once

// CUDA's driver library, opened at run time. The engine is the same binary with and without CUDA.

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "device/cuda/driver_calls.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

// Thread-safe. The library is opened once per process and never closed, because the driver leaves threads and exit
// handlers in the process.
class Driver {
 public:
  // Opens the library named by FEEDLINE_CUDA_DRIVER, or libcuda.so.1. kConfig: the library is missing, too old or has
  // no device, or its initialization fails; the message suggests a fix. A failed attempt is repeated at the next call.
  static Result<std::shared_ptr<const Driver>> open();

  // Checks that open() would find a library that has every function, including the functions that only newer drivers
  // have. Does not initialize the driver. kConfig: open() would fail; the message does not mention loaders.
  static Result<void> look();

  const DriverCalls& calls() const { return calls_; }
  int version() const { return version_; }  // supported version of CUDA: 1000 * major + 10 * minor
  int devices() const { return devices_; }
  // The value of CUDA_VISIBLE_DEVICES when CUDA was initialized; CUDA reads it only once. Empty if the variable was not
  // set.
  const std::string& visible() const { return visible_; }

  // Checks the status of a call; an error contains the call's name. Errors are kStorage, with ENOMEM if the GPU is out
  // of memory.
  Result<void> check(std::string_view call, int status) const;
  // Returns kConfig in a forked child: CUDA does not work in a child, and must not be called.
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
