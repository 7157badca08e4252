// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of kernels/, loaded into a GPU's context.

#include <array>
#include <memory>
#include <string>

#include "device/cuda/context.h"
#include "device/cuda/kernels/launch.h"

namespace feedline::device::cuda {

// Thread-safe. This object must outlive the kernels that it launches.
class PixelKernels {
 public:
  // Loads the binary code for the GPU, or PTX, which the driver compiles. Returns an error if neither can be loaded.
  static Result<std::shared_ptr<const PixelKernels>> load(std::shared_ptr<const Context> context);
  ~PixelKernels();
  PixelKernels(const PixelKernels&) = delete;
  PixelKernels& operator=(const PixelKernels&) = delete;

  const std::string& image() const { return image_; }  // "sm_90"
  // Launches the kernel on the stream, after the work queued so far, with the context current. Requires: check_job().
  Result<void> launch(const PixelJob& job, Element element, StreamHandle stream) const;
  Result<void> launch(const CachedRowsJob& job, StreamHandle stream) const;
  Result<void> launch_colours(const CachedRowsJob& job, StreamHandle stream) const;

 private:
  explicit PixelKernels(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  Result<void> load_image();
  Result<void> find_functions();
  Result<int> capability(int attribute) const;
  Result<void> launch(FunctionHandle function, const Launch& launch, void* job, StreamHandle stream) const;

  const std::shared_ptr<const Context> context_;
  std::string image_;
  ModuleHandle module_ = nullptr;
  std::array<FunctionHandle, 4> functions_{};  // by Element
  FunctionHandle cached_rows_ = nullptr, cached_colours_ = nullptr;
};

}  // namespace feedline::device::cuda
