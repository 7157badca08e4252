// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/pixel_kernels.h"

#include <tuple>
#include <utility>

#include "device/cuda/kernels/images.h"

namespace feedline::device::cuda {

Result<std::shared_ptr<const PixelKernels>> PixelKernels::load(std::shared_ptr<const Context> context) {
  std::shared_ptr<PixelKernels> kernels(new PixelKernels(std::move(context)));
  FEEDLINE_CHECK_OK(kernels->load_image());
  FEEDLINE_CHECK_OK(kernels->find_functions());
  return std::shared_ptr<const PixelKernels>(std::move(kernels));
}

PixelKernels::~PixelKernels() {
  if (module_ != nullptr && !context_->driver().is_of_a_parent())
    std::ignore = context_->call("cuModuleUnload", context_->calls().module_unload, module_);
}

Result<int> PixelKernels::capability(int attribute) const {
  int value = 0;
  FEEDLINE_CHECK_OK(context_->call("cuDeviceGetAttribute", context_->calls().device_attribute, &value, attribute,
                                   context_->device()));
  return value;
}

Result<void> PixelKernels::load_image() {
  FEEDLINE_TRY(const int major, capability(kComputeCapabilityMajor));
  FEEDLINE_TRY(const int minor, capability(kComputeCapabilityMinor));
  const auto load = [this](const Image& image) {
    image_ = image.name;
    return context_->call("cuModuleLoadData", context_->calls().module_load, &module_,
                          static_cast<const void*>(image.bytes.data()));
  };
  FEEDLINE_TRY(const Image image, image_for(major, minor));
  auto loaded = load(image);
  if (loaded) return {};
  // a driver rejects code of a newer compiler, but translates PTX
  const auto ptx = ptx_for(major, minor);
  return ptx ? load(*ptx) : std::move(loaded);
}

Result<void> PixelKernels::find_functions() {
  PixelJob job{};
  job.rows = job.width = job.height = job.channels = 1;
  for (const Element element : {Element::kUint8, Element::kFloat32, Element::kFloat16, Element::kBfloat16})
    FEEDLINE_CHECK_OK(context_->call("cuModuleGetFunction", context_->calls().module_function,
                                     &functions_[static_cast<std::size_t>(element)], module_,
                                     launch_of(job, element).entry));
  const CachedRowsJob cached{.rows = 1, .width = 1, .height = 1, .channels = 1};
  FEEDLINE_CHECK_OK(context_->call("cuModuleGetFunction", context_->calls().module_function, &cached_rows_, module_,
                                   launch_of(cached).entry));
  return context_->call("cuModuleGetFunction", context_->calls().module_function, &cached_colours_, module_,
                        launch_of_colours(cached).entry);
}

Result<void> PixelKernels::launch(FunctionHandle function, const Launch& launch, void* job, StreamHandle stream) const {
  void* arguments[] = {job};
  return context_->driver().check(
      "cuLaunchKernel",
      context_->calls().launch(function, launch.blocks, 1, 1, launch.threads, 1, 1, 0, stream, arguments, nullptr));
}

Result<void> PixelKernels::launch(const PixelJob& job, Element element, StreamHandle stream) const {
  PixelJob argument = job;
  return launch(functions_[static_cast<std::size_t>(element)], launch_of(job, element), &argument, stream);
}

Result<void> PixelKernels::launch(const CachedRowsJob& job, StreamHandle stream) const {
  CachedRowsJob argument = job;
  return launch(cached_rows_, launch_of(job), &argument, stream);
}

Result<void> PixelKernels::launch_colours(const CachedRowsJob& job, StreamHandle stream) const {
  CachedRowsJob argument = job;
  return launch(cached_colours_, launch_of_colours(job), &argument, stream);
}

}  // namespace feedline::device::cuda
