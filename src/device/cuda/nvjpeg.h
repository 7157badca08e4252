// SPDX-License-Identifier: Apache-2.0
#pragma once

// nvJPEG, which decodes JPEGs on a GPU, opened at run time: a package of a few megabytes that nothing needs but
// decode(device="cuda").

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/driver.h"
#include "device/cuda/nvjpeg_calls.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

// What the library may be called, the latest first, of the versions of CUDA that a driver of this one runs: 1000 *
// major + 10 * minor. Whoever knows of it in a folder of its own has loaded it by then: the name is enough.
std::vector<std::string> nvjpeg_files(int cuda_version);

// Thread-safe. Never closed.
class JpegLibrary {
 public:
  // The library that FEEDLINE_NVJPEG names, or else the first of nvjpeg_files(). kConfig: there is none, or it lacks a
  // call; the message names the package to install.
  static Result<std::shared_ptr<const JpegLibrary>> open(const Driver& driver);

  const JpegCalls& calls() const { return calls_; }
  const std::string& version() const { return version_; }  // "12.4.0"
  // What a call that gave `status` means: nothing, or an error that names the call. kStorage, with ENOMEM where there
  // is no memory.
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
