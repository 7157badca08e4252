// SPDX-License-Identifier: Apache-2.0

// Measures decoding of whole PNGs to RGB with one thread: our decoder (libdeflate and our own filters) and libspng
// alternate over the same images. Checks first that their pixels are equal.
//
// usage: png_images FOLDER [ROUNDS=7] [IMAGES=40]; FOLDER has photos as JPEGs, which are written as PNGs of each kind.
// Prints one line of JSON per kind: the median and minimum of the CPU time ratios of the rounds.

#include <spng.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "decode/jpeg/jpeg_decoder.h"
#include "decode/png/png_decoder.h"
#include "decode/png/png_fixture.h"

namespace {

namespace fd = feedline::decode;
using Pixels = feedline::memory::PixelBuffer;

struct Kind {
  const char* name;
  spng_color_type color;
  int depth;
  bool interlaced;
};
constexpr Kind kKinds[] = {
    {"RGB", SPNG_COLOR_TYPE_TRUECOLOR, 8, false},          {"RGB interlaced", SPNG_COLOR_TYPE_TRUECOLOR, 8, true},
    {"RGB 16 bits", SPNG_COLOR_TYPE_TRUECOLOR, 16, false}, {"RGBA", SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8, false},
    {"grey", SPNG_COLOR_TYPE_GRAYSCALE, 8, false},         {"grey 16 bits", SPNG_COLOR_TYPE_GRAYSCALE, 16, false},
    {"palette", SPNG_COLOR_TYPE_INDEXED, 8, false}};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(3);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void decode(fd::Codec& codec, std::span<const std::byte> bytes, Pixels& out) {
  const auto header = codec.open(bytes);
  if (!header || !out.resize(header->width, header->height, 3)) fail("cannot open an image");
  const auto decoded = codec.decode({0, 0, header->width, header->height}, feedline::ColorMode::kRgb, out);
  if (!decoded) fail(decoded.error().what);
}

// In 16-bit samples, the low bytes are noise, as from a sensor.
std::vector<std::uint8_t> rows_of(const Kind& kind, Pixels& photo) {
  std::vector<std::uint8_t> rows;
  for (int y = 0; y < photo.height(); ++y)
    for (int x = 0; x < photo.width(); ++x) {
      const std::uint8_t* const rgb = photo.row(y) + 3 * x;
      std::vector<std::uint8_t> samples{rgb[1]};
      if (kind.color == SPNG_COLOR_TYPE_INDEXED)
        samples[0] = static_cast<std::uint8_t>(rgb[0] / 43 * 42 + rgb[1] / 37 * 6 + rgb[2] / 43);
      if (kind.color == SPNG_COLOR_TYPE_TRUECOLOR) samples.assign(rgb, rgb + 3);
      if (kind.color == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA) samples = {rgb[0], rgb[1], rgb[2], 255};
      for (const std::uint8_t sample : samples) {
        if (kind.depth == 16) rows.push_back(static_cast<std::uint8_t>((rows.size() * 2654435761U) >> 24));
        rows.push_back(sample);  // little endian, as libspng requires
      }
    }
  return rows;
}

std::vector<std::byte> encoded(const Kind& kind, Pixels& photo) {
  const spng_ihdr header{static_cast<std::uint32_t>(photo.width()),
                         static_cast<std::uint32_t>(photo.height()),
                         static_cast<std::uint8_t>(kind.depth),
                         static_cast<std::uint8_t>(kind.color),
                         0,
                         0,
                         kind.interlaced};
  return fd::made_png(header, rows_of(kind, photo), SPNG_FMT_PNG, [&](spng_ctx* context) {
    spng_plte palette{};
    palette.n_entries = 252;
    for (std::uint32_t i = 0; i < 252; ++i)
      palette.entries[i] = {static_cast<std::uint8_t>(i / 42 * 51), static_cast<std::uint8_t>(i / 6 % 7 * 42),
                            static_cast<std::uint8_t>(i % 6 * 51), 255};
    if (kind.color == SPNG_COLOR_TYPE_INDEXED) spng_set_plte(context, &palette);
  });
}

std::vector<std::vector<std::byte>> files_of(const std::string& folder, std::size_t most) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".jpg" || entry.path().extension() == ".jpeg") paths.push_back(entry.path());
  std::ranges::sort(paths);
  if (paths.size() > most) paths.resize(most);
  std::vector<std::vector<std::byte>> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    files.emplace_back(text.size());
    std::memcpy(files.back().data(), text.data(), text.size());
  }
  if (files.empty()) fail("no JPEGs in " + folder);
  return files;
}

double seconds(fd::Codec& codec, const std::vector<std::vector<std::byte>>& files, Pixels& out) {
  const double started = cpu_seconds();
  for (const auto& file : files) decode(codec, file, out);
  return cpu_seconds() - started;
}

void check_equal(fd::PngDecoder& ours, fd::PngDecoder& theirs, const std::vector<std::vector<std::byte>>& files) {
  Pixels a, b;
  for (const auto& file : files) {
    decode(ours, file, a);
    decode(theirs, file, b);
    if (ours.used_libspng()) fail("an image was decoded by libspng");
    for (int y = 0; y < a.height(); ++y)
      if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width()) * 3) != 0) fail("other pixels");
  }
}

void measure(const Kind& kind, const std::vector<std::vector<std::byte>>& photos, int rounds) {
  fd::JpegDecoder jpeg;
  Pixels pixels;
  std::vector<std::vector<std::byte>> files;
  std::size_t bytes = 0;
  for (const auto& photo : photos) {
    decode(jpeg, photo, pixels);
    files.push_back(encoded(kind, pixels));
    bytes += files.back().size();
  }
  fd::PngDecoder ours, theirs(fd::PngDecoder::Way::kLibspng);
  check_equal(ours, theirs, files);
  std::vector<double> mine, other, ratios;
  for (int round = 0; round < rounds; ++round) {
    // the order alternates, so that neither always has a warm or throttled core
    if (round % 2 == 0) mine.push_back(seconds(ours, files, pixels));
    other.push_back(seconds(theirs, files, pixels));
    if (round % 2 == 1) mine.push_back(seconds(ours, files, pixels));
    ratios.push_back(other.back() / mine.back());
  }
  std::ranges::sort(ratios);
  const double count = static_cast<double>(files.size());
  std::printf(
      "{\"kind\": \"PNG %s\", \"images\": %zu, \"kilobytes\": %.0f, \"ratio_median\": %.3f, \"ratio_min\": %.3f, "
      "\"ms_ours\": %.4f, \"ms_theirs\": %.4f}\n",
      kind.name, files.size(), static_cast<double>(bytes) / 1e3 / count, ratios[ratios.size() / 2], ratios.front(),
      1e3 * *std::ranges::min_element(mine) / count, 1e3 * *std::ranges::min_element(other) / count);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: png_images FOLDER [ROUNDS] [IMAGES]\n");
    return 2;
  }
  const auto photos = files_of(argv[1], static_cast<std::size_t>(argc > 3 ? std::max(1, std::atoi(argv[3])) : 40));
  for (const Kind& kind : kKinds) measure(kind, photos, argc > 2 ? std::max(1, std::atoi(argv[2])) : 7);
  return 0;
}
