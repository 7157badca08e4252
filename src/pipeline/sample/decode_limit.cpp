// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/decode_limit.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "decode/decoder.h"
#include "format/format.h"
#include "pipeline/fields/pixels_path.h"
#include "pipeline/fields/views_path.h"
#include "pipeline/sample/sample_loader.h"

namespace feedline::pipeline {
namespace {

struct Work {
  std::vector<std::byte> encoded;
  std::vector<ViewsPath::Region> regions;  // several regions are decoded separately
  bool is_one_of_pixels() const { return regions.size() == 1 && !regions.front().planes; }
};

struct Decoder {
  decode::ImageDecoder decoder;
  memory::PixelBuffer pixels;
  memory::Planes samples;

  Result<void> decode(const Work& work, ColorMode mode, bool applies_exif) {
    for (const ViewsPath::Region& region : work.regions) {
      FEEDLINE_CHECK_OK(decoder.open(work.encoded, applies_exif));
      if (region.planes && decoder.decode_planes(region.box, mode, *region.planes, samples)) continue;
      FEEDLINE_CHECK_OK(decoder.decode(region.box, mode, pixels));
    }
    return {};
  }
};

double process_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

Result<DecodeLimit> measure_decode(std::shared_ptr<const Recipe> recipe, std::uint64_t images, int threads,
                                   std::uint64_t seed) {
  if (recipe->images == 0) return config_error("measure_decode: the dataset has no image field");
  if (images == 0 || threads < 1) return config_error("measure_decode: images and threads must be at least 1");
  std::vector<Work> work(std::min(images, recipe->format->size()));
  DecodeLimit limit;
  SampleLoader loader(recipe, nullptr);
  for (std::uint64_t i = 0; i < work.size(); ++i) {
    FEEDLINE_TRY(const SampleLoader::Drawn drawn, loader.draw({seed, 0, i}));
    if (drawn.encoded.empty())
      return config_error("measure_decode: the images are stored as pixels, so there is nothing to decode");
    work[i] = {{drawn.encoded.begin(), drawn.encoded.end()}, {drawn.regions.begin(), drawn.regions.end()}};
    limit.encoded_bytes += drawn.encoded.size();
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> failure;
  const ColorMode mode = recipe->views ? recipe->views->color_mode() : recipe->image->chain().color_mode();
  const bool applies_exif = recipe->views ? recipe->views->applies_exif() : recipe->image->chain().applies_exif();
  const auto note = [&](std::size_t i, Result<void> decoded) {
    if (decoded) return;
    const std::lock_guard lock(mutex);
    failure = with_location(std::move(decoded).error(), *recipe, i);
  };
  const auto lose = [&](Error error) {
    const std::lock_guard lock(mutex);
    failure = std::move(error);
  };
  const auto decode_all = [&] {  // like SampleLoader
    Decoder first, second;
    const auto alone = [&](std::size_t i) { note(i, first.decode(work[i], mode, applies_exif)); };
    for (std::size_t i; (i = next.fetch_add(2, std::memory_order_relaxed)) < work.size();) {
      if (i + 1 == work.size()) {
        alone(i);
      } else if (!work[i].is_one_of_pixels() || !work[i + 1].is_one_of_pixels() ||
                 !first.decoder.open(work[i].encoded, applies_exif) ||
                 !second.decoder.open(work[i + 1].encoded, applies_exif)) {
        alone(i);
        alone(i + 1);
      } else {
        auto decoded =
            decode::ImageDecoder::decode_in_turn(first.decoder, {work[i].regions[0].box, mode, &first.pixels},
                                                 second.decoder, {work[i + 1].regions[0].box, mode, &second.pixels});
        note(i, std::move(decoded[0]));
        note(i + 1, std::move(decoded[1]));
      }
    }
  };
  const double cpu_before = process_cpu_s();
  const std::uint64_t started = base::now_ns();
  {
    std::vector<base::Thread> pool;
    for (int i = 0; i < threads; ++i) {
      FEEDLINE_TRY(auto thread, base::Thread::start("feedline-limit", decode_all, lose));
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
