// SPDX-License-Identifier: Apache-2.0
#pragma once

// Provides the launch parameters that run a job on a GPU, and runs the same kernel on the CPU as a loop over its grid.
// Pure functions.

#include <cstddef>
#include <cstdint>

#include "device/cuda/kernels/pixel_job.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

std::size_t size_of(Element element);  // bytes

// Checks that a kernel supports the job. kConfig: no images or channels, too many images, channels or pixels, a stride
// smaller than a row, floats without a table, or blended bytes. Does not dereference pointers.
Result<void> check_job(const PixelJob& job, Element element);

struct Launch {
  const char* entry = "";     // the kernel's name in the image
  std::uint32_t blocks = 0;   // in the grid, which has one dimension
  std::uint32_t threads = 0;  // per block
};
// The job is the only argument of the kernel. Requires: check_job().
Launch launch_of(const PixelJob& job, Element element);

// Checks jobs that use cached images. Does not check the data that follows a CachedRow.
Result<void> check_job(const CachedRowsJob& job);
Launch launch_of(const CachedRowsJob& job);
void run_on_cpu(const CachedRowsJob& job);
// Returns the kernel to launch next for the same job if a row has colour changes.
Launch launch_of_colours(const CachedRowsJob& job);
void change_colours_on_cpu(const CachedRowsJob& job);

// Computes the job's rows on the calling thread. Requires: check_job() succeeded, and all pointers of the job are host
// addresses.
void run_on_cpu(const PixelJob& job, Element element);

// Rounds to nearest even; NaN remains NaN.
std::uint16_t to_bfloat16(float value);

}  // namespace feedline::device::cuda
