// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a PixelJob is run: on a GPU, what to launch; on the CPU, the same kernel as a loop over its grid. Pure functions.

#include <cstddef>
#include <cstdint>

#include "device/cuda/kernels/pixel_job.h"
#include "feedline/error.h"

namespace feedline::device::cuda {

std::size_t size_of(Element element);  // bytes

// Can a kernel do this? kConfig: no images, channels, or more of them, or of pixels, than it counts; a stride below a
// row's bytes; floats without a table; bytes that are blended. Looks at no pointer's memory.
Result<void> check_job(const PixelJob& job, Element element);

struct Launch {
  const char* entry = "";     // the kernel's name in the image
  std::uint32_t blocks = 0;   // of the grid, which has one dimension
  std::uint32_t threads = 0;  // of a block
};
// The job is the kernel's one argument. Requires: check_job().
Launch launch_of(const PixelJob& job, Element element);

// The same of rows that are made of kept images. What stands behind a KeptRow is not looked at.
Result<void> check_job(const KeptJob& job);
Launch launch_of(const KeptJob& job);
void run_on_cpu(const KeptJob& job);
// What follows where a row has colours to change: of the same job.
Launch launch_of_colours(const KeptJob& job);
void change_colours_on_cpu(const KeptJob& job);

// The job's rows, on this thread. Requires: check_job(), and all its pointers are the host's.
void run_on_cpu(const PixelJob& job, Element element);

// To the nearest even; a NaN stays one.
std::uint16_t to_bfloat16(float value);

}  // namespace feedline::device::cuda
