// SPDX-License-Identifier: Apache-2.0

// Measures the cost of decoding a region, for the constants in src/decode/decode_cost.cpp: decodes random regions of
// each image in a folder several times on one thread.
//
// usage: view_regions FOLDER [REGIONS=12] [ROUNDS=5]; prints a line of JSON for each format, with the constants that
// fit best (least squares of relative errors, none below 0), and their errors.

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "decode/image_formats.h"

namespace {

namespace fd = feedline::decode;
constexpr std::size_t kTerms = 4;  // image, byte, above, pixel
using Terms = std::array<double, kTerms>;

struct Measured {
  Terms terms;
  double ns;
};

double thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

feedline::Box draw_box(int width, int height, std::mt19937& random) {
  const auto below = [&random](int bound) { return std::uniform_int_distribution<int>(0, bound)(random); };
  const double side = std::sqrt(std::uniform_real_distribution<double>(0.01, 1.0)(random));
  const int w = std::max(8, static_cast<int>(width * side)), h = std::max(8, static_cast<int>(height * side));
  return {below(width - w), below(height - h), w, h};
}

// The sum of squared relative errors, and the constants that minimise it, found by coordinate descent.
Terms fit(const std::vector<Measured>& all) {
  Terms constants{};
  for (int round = 0; round < 3000; ++round)
    for (std::size_t term = 0; term < kTerms; ++term) {
      double above = 0, below = 0;
      for (const Measured& one : all) {
        double rest = 1;
        for (std::size_t other = 0; other < kTerms; ++other)
          if (other != term) rest -= constants[other] * one.terms[other] / one.ns;
        const double x = one.terms[term] / one.ns;
        above += rest * x;
        below += x * x;
      }
      constants[term] = std::max(0.0, above / below);
    }
  return constants;
}

double error_of(const std::vector<Measured>& all, const Terms& constants) {
  double sum = 0;
  for (const Measured& one : all) {
    double ns = 0;
    for (std::size_t term = 0; term < kTerms; ++term) ns += constants[term] * one.terms[term];
    sum += std::abs(ns / one.ns - 1);
  }
  return sum / static_cast<double>(all.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: view_regions FOLDER [REGIONS] [ROUNDS]\n");
    return 2;
  }
  const int regions = argc > 2 ? std::max(1, std::atoi(argv[2])) : 12;
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  std::map<std::string, std::vector<Measured>> measured;
  std::mt19937 random(1);
  fd::ImageDecoder decoder;
  feedline::memory::PixelBuffer out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    const auto header = decoder.open(bytes);
    if (!header) continue;
    for (int i = 0; i < regions; ++i) {
      const feedline::Box box =
          i == 0 ? feedline::Box{0, 0, header->width, header->height} : draw_box(header->width, header->height, random);
      double best = 0;
      for (int round = 0; round < rounds; ++round) {
        const double started = thread_ns();
        if (!decoder.open(bytes) || !decoder.decode(box, feedline::ColorMode::kRgb, out)) return 3;
        const double ns = thread_ns() - started;
        best = round == 0 ? ns : std::min(best, ns);
      }
      const double rows = box.top + box.height;
      measured[std::string(header->format->name)].push_back(
          {{1, static_cast<double>(bytes.size()) * rows / header->height, rows * header->width,
            static_cast<double>(box.width) * box.height},
           best});
    }
  }
  for (const auto& [format, all] : measured) {
    const Terms constants = fit(all);
    std::printf(
        "{\"format\": \"%s\", \"regions\": %zu, \"image\": %.0f, \"byte\": %.3f, \"above\": %.3f, \"pixel\": %.3f, "
        "\"mean_error\": %.3f}\n",
        format.c_str(), all.size(), constants[0], constants[1], constants[2], constants[3], error_of(all, constants));
  }
  return 0;
}
