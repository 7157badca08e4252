// SPDX-License-Identifier: Apache-2.0
#pragma once

// nvJPEG, which decodes JPEGs on a GPU, opened at run time: a package of a few megabytes that only
// decode(device="cuda") needs.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/driver.h"
#include "device/cuda/nvjpeg_calls.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

// Returns possible file names of the library, latest first, for the CUDA versions that this driver supports: 1000 *
// major + 10 * minor. Callers that know of one in another folder must have loaded it before: the name is then
// sufficient.
std::vector<std::string> nvjpeg_files(int cuda_version);

// Thread-safe. Never closed.
class JpegLibrary {
 public:
  // Opens the library named by FEEDLINE_NVJPEG, or the first of nvjpeg_files(). kConfig: it is missing, or lacks a
  // call; the message names the package to install.
  static Result<std::shared_ptr<const JpegLibrary>> open(const Driver& driver);

  const JpegCalls& calls() const { return calls_; }
  const std::string& version() const { return version_; }  // "12.4.0"
  // Converts a call's status: returns nothing, or an error that names the call. kStorage, with ENOMEM if out of memory.
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
