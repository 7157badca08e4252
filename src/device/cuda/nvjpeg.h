// SPDX-License-Identifier: Apache-2.0
#pragma once

// nvJPEG decodes JPEGs on a GPU. The library is in a separate package of a few megabytes that only
// decode(device="cuda") needs, and is opened at run time.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/driver.h"
#include "device/cuda/nvjpeg_calls.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

// Returns the file names that the library may have, latest first, for the CUDA versions that this driver supports.
// cuda_version: 1000 * major + 10 * minor. Callers that find the library in another folder must load it first: open()
// then finds it by name.
std::vector<std::string> nvjpeg_files(int cuda_version);

// Thread-safe. Never closed.
class JpegLibrary {
 public:
  // Opens the library named by FEEDLINE_NVJPEG, or the first available one of nvjpeg_files(). kConfig: the library is
  // missing, or lacks a function; the message names the package to install.
  static Result<std::shared_ptr<const JpegLibrary>> open(const Driver& driver);

  const JpegCalls& calls() const { return calls_; }
  const std::string& version() const { return version_; }  // "12.4.0"
  // Checks the status of a call; an error contains the call's name. Errors are kStorage, with ENOMEM if the GPU is out
  // of memory.
  Result<void> check(std::string_view call, int status) const;

 private:
  JpegLibrary() = default;
  static Result<std::shared_ptr<const JpegLibrary>> load(void* library, const std::string& file, const Driver& driver);
  Result<void> look_up(void* library, const std::string& file);
  Result<void> read_version();

  JpegCalls calls_;
  std::string version_;
};

}  // namespace feedline::device::cuda
