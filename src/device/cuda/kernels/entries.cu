// SPDX-License-Identifier: Apache-2.0

// Defines the kernels under the names that the driver looks up. This file has no includes: tools/kernels prepends
// pixel_job.h, pixel_kernels-inl.h, cached_rows-inl.h and cached_colours-inl.h.

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

extern "C" __global__ void __launch_bounds__(256) feedline_cached_rows(const feedline::device::cuda::CachedRowsJob job) {
  feedline::device::cuda::fill_cached(job, blockIdx.x, threadIdx.x);
}

extern "C" __global__ void __launch_bounds__(256) feedline_cached_colours(const feedline::device::cuda::CachedRowsJob job) {
  namespace cuda = feedline::device::cuda;
  __shared__ std::uint32_t sums[cuda::kThreads];
  const cuda::CachedRow& row = cuda::cached_row(job, blockIdx.x);
  FEEDLINE_ROLLED for (std::uint32_t i = 0; i < row.colours; ++i) {
    std::uint32_t mean = 0;
    if (row.colour[i].kind == cuda::ColourChange::kContrast) {
      sums[threadIdx.x] = cuda::sum_greys(job, blockIdx.x, threadIdx.x);
      __syncthreads();
      mean = cuda::mean_grey(job, sums);
      __syncthreads();
    }
    cuda::change_pixels(job, blockIdx.x, threadIdx.x, row.colour[i], mean);
  }
}
