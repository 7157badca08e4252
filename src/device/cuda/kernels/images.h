// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels as the driver loads them: code for generations of GPUs, and PTX, which a driver translates for those that
// came later. Pure functions, thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline::device::cuda {

struct Image {
  std::string_view name;  // "sm_80"; "compute_70" is PTX
  std::string bytes;      // for cuModuleLoadData: an ELF file, or text that ends with a NUL
};

// Of a GPU with that compute capability: code where there is any of its generation, else PTX. kConfig: it is earlier
// than all of them; the message says what serves in place of the kernels.
Result<Image> image_for(int major, int minor);
// What a driver translates for the same GPU, where it refuses code that a later compiler made.
Result<Image> ptx_for(int major, int minor);

std::vector<std::string_view> image_names();
// SHA-256 of the source that the images were compiled from, in hexadecimal digits; tools/kernel_images.py tells what
// of.
std::string_view image_source_digest();

}  // namespace feedline::device::cuda
