// SPDX-License-Identifier: Apache-2.0

// The kernels under the names that the driver finds them by. Never includes: tools/kernels puts pixel_job.h,
// pixel_kernels-inl.h and kept_rows-inl.h in front.

#define FEEDLINE_ENTRY(name, Kind)                                                     \
  extern "C" __global__ void __launch_bounds__(256) name(const feedline::device::cuda::PixelJob job) { \
    using feedline::device::cuda::Kind;                                                \
    __shared__ Kind::Bits tables[feedline::device::cuda::kMostChannels * 256];         \
    feedline::device::cuda::fetch_tables(job, threadIdx.x, tables);                    \
    __syncthreads();                                                                   \
    feedline::device::cuda::fill<Kind>(job, blockIdx.x, threadIdx.x, tables);          \
  }

FEEDLINE_ENTRY(feedline_pixels_uint8, Bytes)
FEEDLINE_ENTRY(feedline_pixels_float32, Floats)
FEEDLINE_ENTRY(feedline_pixels_float16, Halves)
FEEDLINE_ENTRY(feedline_pixels_bfloat16, Bfloats)

extern "C" __global__ void __launch_bounds__(256) feedline_kept_rows(const feedline::device::cuda::KeptJob job) {
  feedline::device::cuda::fill_kept(job, blockIdx.x, threadIdx.x);
}
