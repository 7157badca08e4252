// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels in the form that the driver loads: binary code for several GPU generations, and PTX, which the driver
// compiles for later generations. Pure functions, thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline::device::cuda {

struct Image {
  std::string_view name;  // "sm_80"; "compute_70" is PTX
  std::string bytes;      // for cuModuleLoadData: an ELF file, or text that ends with a NUL
};

// Returns the code for a GPU with this compute capability: binary code for its generation if available, else PTX.
// kConfig: the GPU is too old; the message describes the alternative.
Result<Image> image_for(int major, int minor);
// Returns the PTX for the same GPU, for drivers that reject code from a newer compiler.
Result<Image> ptx_for(int major, int minor);

std::vector<std::string_view> image_names();
// Returns the SHA-256, in hexadecimal, of the source that the images were compiled from (see tools/kernel_images.py).
std::string_view image_source_digest();

}  // namespace feedline::device::cuda
