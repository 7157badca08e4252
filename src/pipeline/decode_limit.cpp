// SPDX-License-Identifier: Apache-2.0
#include "pipeline/decode_limit.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "decode/decoder.h"
#include "pipeline/sample_loader.h"

namespace feedline::pipeline {
namespace {

struct Work {
  std::vector<std::byte> encoded;
  Box region;
  std::optional<memory::Coarseness> planes;
};

double process_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

Result<DecodeLimit> measure_decode(std::shared_ptr<const Recipe> recipe, std::uint64_t images, int threads,
                                   std::uint64_t seed) {
  if (!recipe->chain) return config_error("measure_decode: the data set has no image field");
  if (images == 0 || threads < 1) return config_error("measure_decode: images and threads must be at least 1");
  std::vector<Work> work(std::min(images, recipe->format->size()));
  DecodeLimit limit;
  SampleLoader loader(recipe, nullptr);
  for (std::uint64_t i = 0; i < work.size(); ++i) {
    FEEDLINE_TRY(const SampleLoader::Drawn drawn, loader.draw({seed, 0, i}));
    if (drawn.encoded.empty())
      return config_error("measure_decode: the images are stored as pixels, nothing to decode");
    work[i] = {{drawn.encoded.begin(), drawn.encoded.end()}, drawn.drawing->region, drawn.drawing->planes};
    limit.encoded_bytes += drawn.encoded.size();
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> failure;
  const ColorMode mode = recipe->chain->color_mode();
  const auto decode_all = [&] {
    decode::ImageDecoder decoder;
    memory::PixelBuffer pixels;
    memory::Planes planes;
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < work.size();) {
      auto header = decoder.open(work[i].encoded);
      const auto& [encoded, region, coarseness] = work[i];
      if (header && coarseness && decoder.decode_planes(region, mode, *coarseness, planes)) continue;
      auto decoded = header ? decoder.decode(region, mode, pixels) : std::unexpected(header.error());
      if (decoded) continue;
      const std::lock_guard lock(mutex);
      failure = with_place(std::move(decoded).error(), *recipe, i);
    }
  };
  const double cpu_before = process_cpu_s();
  const std::uint64_t started = base::now_ns();
  {
    std::vector<base::Thread> pool;
    for (int i = 0; i < threads; ++i) {
      FEEDLINE_TRY(auto thread, base::Thread::start("feedline-limit", decode_all));
      pool.push_back(std::move(thread));
    }
  }  // joins
  limit.wall_s = static_cast<double>(base::now_ns() - started) * 1e-9;
  limit.cpu_s = process_cpu_s() - cpu_before;
  limit.images = work.size();
  limit.threads = threads;
  if (failure) return std::unexpected(*failure);
  return limit;
}

}  // namespace feedline::pipeline
