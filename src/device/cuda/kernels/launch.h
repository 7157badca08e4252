// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a PixelJob: returns what to launch on a GPU, or runs the same kernel on the CPU as a loop over its grid. Pure
// functions.

#include <cstddef>
#include <cstdint>

#include "device/cuda/kernels/pixel_job.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

std::size_t size_of(Element element);  // bytes

// Checks that a kernel supports the job. kConfig: no images or channels, or too many of them or of pixels; a stride
// smaller than a row; floats without a table; blended bytes. Does not dereference pointers.
Result<void> check_job(const PixelJob& job, Element element);

struct Launch {
  const char* entry = "";     // the kernel's name in the image
  std::uint32_t blocks = 0;   // in the grid, which has one dimension
  std::uint32_t threads = 0;  // per block
};
// The job is the kernel's only argument. Requires: check_job().
Launch launch_of(const PixelJob& job, Element element);

// The same for rows made from cached images. Does not check the data after a KeptRow.
Result<void> check_job(const KeptJob& job);
Launch launch_of(const KeptJob& job);
void run_on_cpu(const KeptJob& job);
// The kernel to launch next, for the same job, if a row has colour changes.
Launch launch_of_colours(const KeptJob& job);
void change_colours_on_cpu(const KeptJob& job);

// Computes the job's rows on this thread. Requires: check_job(), and all its pointers are host addresses.
void run_on_cpu(const PixelJob& job, Element element);

// Rounds to nearest even; NaN stays NaN.
std::uint16_t to_bfloat16(float value);

}  // namespace feedline::device::cuda
