// SPDX-License-Identifier: Apache-2.0

// Measures the gain of restart markers: one thread alternately decodes regions of the same images with and without
// them. Checks first that the pixels are equal.
//
// usage: restart_regions FOLDER [CROP=224] [ROUNDS=7] [IMAGES=200] [INTERVAL...]; prints a line of JSON per interval.
// CROP: the side of a square at a random position, or 0 for random_resized_crop's boxes. INTERVAL: MCUs between
// markers; 0: one row of MCUs.

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "decode/jpeg/baseline/baseline_kernels.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/jpeg/restart_scan.h"
#include "decode/jpeg/restart_transcoder.h"

namespace {

namespace fd = feedline::decode;
using Bytes = std::vector<std::byte>;

struct Work {
  Bytes plain, marked;
  feedline::Box box;
  int width = 0;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "restart_regions: %s\n", what.c_str());
  std::exit(3);
}

// torchvision's RandomResizedCrop: scale 0.08 to 1 of the area, ratio 3/4 to 4/3; or a square.
feedline::Box draw_box(int width, int height, int side, std::mt19937& random) {
  const auto below = [&random](int bound) { return std::uniform_int_distribution<int>(0, bound)(random); };
  if (side > 0) return {below(width - side), below(height - side), side, side};
  const double area = static_cast<double>(width) * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * std::uniform_real_distribution<double>(0.08, 1.0)(random);
    const double ratio = std::exp(std::uniform_real_distribution<double>(std::log(0.75), std::log(4.0 / 3))(random));
    const int w = static_cast<int>(std::lround(std::sqrt(wanted * ratio)));
    const int h = static_cast<int>(std::lround(std::sqrt(wanted / ratio)));
    if (w > 0 && h > 0 && w <= width && h <= height) return {below(width - w), below(height - h), w, h};
  }
  return {0, 0, width, height};
}

std::vector<Work> read_work(const std::string& folder, std::size_t images, int side) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".jpg" || entry.path().extension() == ".jpeg") files.push_back(entry.path());
  std::ranges::sort(files);
  std::mt19937 random(1);
  std::ranges::shuffle(files, random);
  std::vector<Work> all;
  fd::JpegDecoder decoder;
  for (const auto& file : files) {
    if (all.size() == images) break;
    std::ifstream stream(file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    Work work;
    work.plain.resize(text.size());
    std::memcpy(work.plain.data(), text.data(), text.size());
    const auto header = decoder.open(work.plain);
    if (!header) fail(file.string() + ": " + header.error().what);
    if (side > std::min(header->width, header->height)) continue;
    work.width = header->width;
    work.box = draw_box(header->width, header->height, side, random);
    all.push_back(std::move(work));
  }
  if (all.empty()) fail("no JPEGs that are large enough in " + folder);
  return all;
}

void decode(fd::JpegDecoder& decoder, const Bytes& bytes, const feedline::Box& box,
            feedline::memory::PixelBuffer& out) {
  if (!decoder.open(bytes) || !out.resize(box.width, box.height, 3) ||
      !decoder.decode(box, feedline::ColorMode::kRgb, out))
    fail("cannot decode an image");
}

// CPU time, which other work on the machine affects less than wall time.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename Each>
double seconds(const std::vector<Work>& all, Each each) {
  const double started = thread_seconds();
  for (const Work& work : all) each(work);
  return thread_seconds() - started;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Scans all markers of the file, although a region needs only those before its end.
void scan(const Bytes& bytes) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::uint8_t marker[] = {0xFF, 0xD0};
  const auto* const end = from + bytes.size();
  const auto* const first = std::search(from, end, std::begin(marker), std::end(marker));
  if (fd::baseline::best_kernels().pass_restarts(first, end, 0, 1 << 30)) fail("too many markers for a file");
}

void measure(std::vector<Work>& all, int interval, int rounds) {
  double plain_bytes = 0, marked_bytes = 0;
  for (Work& work : all) {
    const int row = (work.width + 15) / 16;
    auto marked = fd::with_restarts(work.plain, interval > 0 ? interval : row);
    if (!marked) fail(marked.error().what);
    work.marked = *marked ? std::move(**marked) : work.plain;
    plain_bytes += static_cast<double>(work.plain.size()), marked_bytes += static_cast<double>(work.marked.size());
  }
  fd::JpegDecoder ours, libjpeg(nullptr);
  feedline::memory::PixelBuffer out, expected;
  for (const Work& work : all) {
    decode(libjpeg, work.plain, work.box, expected);
    decode(ours, work.marked, work.box, out);
    for (int y = 0; y < work.box.height; ++y)
      if (std::memcmp(out.row(y), expected.row(y), std::size_t{3} * static_cast<std::size_t>(work.box.width)) != 0)
        fail("pixels differ");
  }
  std::vector<double> marked, plain, theirs, scans, gain, gain_theirs;
  for (int round = 0; round < rounds; ++round) {
    marked.push_back(seconds(all, [&](const Work& work) { decode(ours, work.marked, work.box, out); }));
    plain.push_back(seconds(all, [&](const Work& work) { decode(ours, work.plain, work.box, out); }));
    theirs.push_back(seconds(all, [&](const Work& work) { decode(libjpeg, work.plain, work.box, out); }));
    scans.push_back(seconds(all, [&](const Work& work) { scan(work.marked); }));
    gain.push_back(plain.back() / marked.back()), gain_theirs.push_back(theirs.back() / marked.back());
  }
  const double us = 1e6 / static_cast<double>(all.size());
  std::printf(
      "{\"images\": %zu, \"interval\": %d, \"growth_percent\": %.2f, \"us_marked\": %.1f, \"us_plain\": %.1f, "
      "\"us_libjpeg\": %.1f, \"us_scan\": %.1f, \"times_plain\": %.2f, \"times_libjpeg\": %.2f}\n",
      all.size(), interval, 100 * (marked_bytes / plain_bytes - 1), us * median(marked), us * median(plain),
      us * median(theirs), us * median(scans), median(gain), median(gain_theirs));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: restart_regions FOLDER [CROP] [ROUNDS] [IMAGES] [INTERVAL...]\n");
    return 2;
  }
  const int side = argc > 2 ? std::atoi(argv[2]) : 224;
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 7;
  const auto images = static_cast<std::size_t>(argc > 4 ? std::max(1, std::atoi(argv[4])) : 200);
  std::vector<Work> all = read_work(argv[1], images, side);
  std::vector<int> intervals;
  for (int i = 5; i < argc; ++i) intervals.push_back(std::atoi(argv[i]));
  if (intervals.empty()) intervals = {2, 4, 5, 8, 16, 0};
  for (const int interval : intervals) measure(all, interval, rounds);
  return 0;
}
