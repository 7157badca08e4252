// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/launch.h"

#include <limits>
#include <string>

#define FEEDLINE_DEVICE
#define FEEDLINE_ROLLED
#include "device/cuda/kernels/pixel_kernels-inl.h"

#include "device/cuda/kernels/cached_rows-inl.h"

#include "device/cuda/kernels/cached_colours-inl.h"

namespace feedline::device::cuda {
namespace {

constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();    // of a grid's first dimension
constexpr std::uint64_t kMostElements = std::numeric_limits<std::int32_t>::max();  // per row: indices are 32 bits wide

std::uint64_t elements_of(const PixelJob& job) { return std::uint64_t{job.width} * job.height * job.channels; }

std::uint64_t blocks_of(const PixelJob& job) {
  const std::uint64_t units = job.planar ? elements_of(job) / job.channels : elements_of(job);
  return job.rows * ((units + kShare - 1) / kShare);
}

std::uint64_t bytes_of(const CachedRowsJob& job) { return std::uint64_t{job.width} * job.height * job.channels; }
std::uint64_t blocks_of(const CachedRowsJob& job) { return job.rows * ((bytes_of(job) + kShare - 1) / kShare); }

template <typename Kind>
void run(const PixelJob& job) {
  typename Kind::Bits tables[kMostChannels * 256];
  const auto blocks = static_cast<std::uint32_t>(blocks_of(job));
  for (std::uint32_t block = 0; block < blocks; ++block) {
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) fetch_tables(job, thread, tables);
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) fill<Kind>(job, block, thread, tables);
  }
}

Result<void> refuse(const std::string& why) { return config_error("images on the GPU: " + why); }

}  // namespace

std::size_t size_of(Element element) {
  switch (element) {
    case Element::kUint8:
      return 1;
    case Element::kFloat32:
      return 4;
    case Element::kFloat16:
    case Element::kBfloat16:
      return 2;
  }
  return 0;
}

Result<void> check_job(const PixelJob& job, Element element) {
  if (job.channels < 1 || job.channels > kMostChannels)
    return refuse(std::to_string(job.channels) + " channels; supported are 1 to " + std::to_string(kMostChannels));
  if (job.rows == 0 || job.width == 0 || job.height == 0) return refuse("there are no pixels");
  // step by step, because the product of all three may overflow
  if (std::uint64_t{job.width} * job.height > kMostElements || elements_of(job) > kMostElements)
    return refuse("an image has more than 2^31 - 1 values");
  if (blocks_of(job) > kMostBlocks) return refuse("the batch has more than 2^31 - 1 blocks");
  if (job.in_stride < elements_of(job) || job.out_stride < elements_of(job) * size_of(element))
    return refuse("rows overlap");
  if (!job.tables && element != Element::kUint8) return refuse("floats need a table, but none is given");
  return {};
}

Launch launch_of(const PixelJob& job, Element element) {
  const char* entry = "feedline_pixels_uint8";
  if (element == Element::kFloat32) entry = "feedline_pixels_float32";
  if (element == Element::kFloat16) entry = "feedline_pixels_float16";
  if (element == Element::kBfloat16) entry = "feedline_pixels_bfloat16";
  return {entry, static_cast<std::uint32_t>(blocks_of(job)), kThreads};
}

Result<void> check_job(const CachedRowsJob& job) {
  if (job.channels < 1 || job.channels > kMostChannels)
    return refuse(std::to_string(job.channels) + " channels; supported are 1 to " + std::to_string(kMostChannels));
  if (job.rows == 0 || job.width == 0 || job.height == 0) return refuse("there are no pixels");
  if (std::uint64_t{job.width} * job.height > kMostElements || bytes_of(job) > kMostElements)
    return refuse("an image has more than 2^31 - 1 values");
  if (blocks_of(job) > kMostBlocks) return refuse("the batch has more than 2^31 - 1 blocks");
  if (job.in_stride < sizeof(CachedRow) || job.in_stride % alignof(CachedRow) != 0 || job.out_stride < bytes_of(job))
    return refuse("rows overlap");
  return {};
}

Launch launch_of(const CachedRowsJob& job) {
  return {"feedline_cached_rows", static_cast<std::uint32_t>(blocks_of(job)), kThreads};
}

void run_on_cpu(const CachedRowsJob& job) {
  const auto blocks = static_cast<std::uint32_t>(blocks_of(job));
  for (std::uint32_t block = 0; block < blocks; ++block)
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) fill_cached(job, block, thread);
}

Launch launch_of_colours(const CachedRowsJob& job) { return {"feedline_cached_colours", job.rows, kThreads}; }

void change_colours_on_cpu(const CachedRowsJob& job) {
  for (std::uint32_t number = 0; number < job.rows; ++number) {
    const CachedRow& row = cached_row(job, number);
    for (std::uint32_t i = 0; i < row.colours; ++i) {
      std::uint32_t sums[kThreads], mean = 0;
      if (row.colour[i].kind == ColourChange::kContrast) {
        for (std::uint32_t thread = 0; thread < kThreads; ++thread) sums[thread] = sum_greys(job, number, thread);
        mean = mean_grey(job, sums);
      }
      for (std::uint32_t thread = 0; thread < kThreads; ++thread)
        change_pixels(job, number, thread, row.colour[i], mean);
    }
  }
}

void run_on_cpu(const PixelJob& job, Element element) {
  switch (element) {
    case Element::kUint8:
      return run<Bytes>(job);
    case Element::kFloat32:
      return run<Floats>(job);
    case Element::kFloat16:
      return run<Halves>(job);
    case Element::kBfloat16:
      return run<Bfloats>(job);
  }
}

std::uint16_t to_bfloat16(float value) { return bfloat16_of(value); }

}  // namespace feedline::device::cuda
