// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels as loaded by the driver: code for generations of GPUs, and PTX, which a driver translates for later ones.
// Pure functions, thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline::device::cuda {

struct Image {
  std::string_view name;  // "sm_80"; "compute_70" is PTX
  std::string bytes;      // for cuModuleLoadData: an ELF file, or text that ends with a NUL
};

// Returns the image for a GPU of that compute capability: code of its generation if there is any, else PTX. kConfig:
// the GPU is too old; the message describes what replaces the kernels.
Result<Image> image_for(int major, int minor);
// Returns the PTX for the same GPU, if its driver rejects code of a newer compiler.
Result<Image> ptx_for(int major, int minor);

std::vector<std::string_view> image_names();
// SHA-256, in hexadecimal, of the source that the images were compiled from; see tools/kernel_images.py.
std::string_view image_source_digest();

}  // namespace feedline::device::cuda
