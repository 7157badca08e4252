// SPDX-License-Identifier: Apache-2.0

// Measures region decoding with one thread: our baseline decoder and libjpeg-turbo alternate over the same shuffled
// images and random_resized_crop boxes. Checks first that their pixels are equal.
//
// usage: jpeg_regions FOLDER [ROUNDS=7] [IMAGES=500] [TABLES=as-is|standard|optimised|progressive] [VARIANT=the best|-]
// [COARSENESS=0] [CROP=random_resized_crop|SIDE]; prints one line of JSON. TABLES other than as-is rewrites the images'
// coefficients with such Huffman tables, or in libjpeg's default progressive scans; VARIANT is the instruction set of
// our decoder, by Highway's name. With a COARSENESS of 1, 2, 4 or 8 our decoder returns planes in which a sample covers
// at most so many pixels in each direction (fidelity "fast"). With 0, it also decodes two images alternately, as the
// engine's threads do.
//
// With SIDE as CROP, boxes are squares at random positions. ms_first is a decode that records checkpoints, and
// ms_checkpoints a decode of another crop that starts from them, as in later epochs; both alternate with ms_ours, which
// has no checkpoints.

#include <cstdio>

#include <jpeglib.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "decode/jpeg/baseline/baseline_kernels.h"
#include "decode/jpeg/checkpoint_fixture.h"
#include "decode/jpeg/jpeg_decoder.h"

namespace {

namespace fd = feedline::decode;
using Bytes = std::vector<std::byte>;

struct Work {
  Bytes encoded;
  feedline::Box box;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "jpeg_regions: %s\n", what.c_str());
  std::exit(3);
}

Bytes with_tables(const Bytes& encoded, const std::string& tables) {
  jpeg_decompress_struct from{};
  jpeg_compress_struct to{};
  jpeg_error_mgr errors{};
  from.err = to.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
  jpeg_read_header(&from, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&from);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&to, &memory, &size);
  jpeg_copy_critical_parameters(&from, &to);
  to.optimize_coding = tables == "optimised";
  if (tables == "progressive") jpeg_simple_progression(&to);
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_finish_decompress(&from);
  jpeg_destroy_compress(&to);
  jpeg_destroy_decompress(&from);
  Bytes bytes(size);
  std::memcpy(bytes.data(), memory, size);
  std::free(memory);
  return bytes;
}

// torchvision's RandomResizedCrop: scale 0.08 to 1 of the area, ratio 3/4 to 4/3.
feedline::Box draw_box(int width, int height, std::mt19937& random) {
  const double area = double{static_cast<double>(width)} * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * std::uniform_real_distribution<double>(0.08, 1.0)(random);
    const double ratio = std::exp(std::uniform_real_distribution<double>(std::log(0.75), std::log(4.0 / 3))(random));
    const int w = static_cast<int>(std::lround(std::sqrt(wanted * ratio)));
    const int h = static_cast<int>(std::lround(std::sqrt(wanted / ratio)));
    if (w <= 0 || h <= 0 || w > width || h > height) continue;
    const auto below = [&random](int bound) { return std::uniform_int_distribution<int>(0, bound)(random); };
    return {below(width - w), below(height - h), w, h};
  }
  return {0, 0, width, height};
}

feedline::Box draw_box(int width, int height, int side, std::mt19937& random) {
  if (side == 0) return draw_box(width, height, random);
  const int w = std::min(side, width), h = std::min(side, height);
  const auto below = [&random](int bound) { return std::uniform_int_distribution<int>(0, bound)(random); };
  return {below(width - w), below(height - h), w, h};
}

std::vector<Work> read_work(const std::string& folder, std::size_t images, const std::string& tables, int side) {
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
    work.encoded.resize(text.size());
    std::memcpy(work.encoded.data(), text.data(), text.size());
    if (tables != "as-is") work.encoded = with_tables(work.encoded, tables);
    const auto header = decoder.open(work.encoded);
    if (!header) fail(file.string() + ": " + header.error().what);
    work.box = draw_box(header->width, header->height, side, random);
    all.push_back(std::move(work));
  }
  if (all.empty()) fail("no JPEGs in " + folder);
  return all;
}

void decode(fd::JpegDecoder& decoder, const Work& work, feedline::memory::PixelBuffer& out) {
  if (!decoder.open(work.encoded) || !out.resize(work.box.width, work.box.height, 3) ||
      !decoder.decode(work.box, feedline::ColorMode::kRgb, out))
    fail("cannot decode an image");
}

// CPU time, which other work on the machine affects less than wall time.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds(fd::JpegDecoder& decoder, const std::vector<Work>& all, feedline::memory::PixelBuffer& out) {
  const double started = thread_seconds();
  for (const Work& work : all) decode(decoder, work, out);
  return thread_seconds() - started;
}

struct Pair {
  explicit Pair(const fd::baseline::Kernels& kernels) : first(&kernels), second(&kernels) {}
  fd::JpegDecoder first, second;
  feedline::memory::PixelBuffer first_out, second_out;
};

void decode(Pair& pair, const Work& a, const Work& b) {
  const auto is_ready = [](fd::JpegDecoder& decoder, const Work& work, feedline::memory::PixelBuffer& out) {
    return decoder.open(work.encoded) && out.resize(work.box.width, work.box.height, 3);
  };
  if (!is_ready(pair.first, a, pair.first_out) || !is_ready(pair.second, b, pair.second_out)) fail("cannot open");
  const auto results =
      fd::JpegDecoder::decode_in_turn(pair.first, {a.box, feedline::ColorMode::kRgb, &pair.first_out}, pair.second,
                                      {b.box, feedline::ColorMode::kRgb, &pair.second_out});
  if (!results[0] || !results[1]) fail("cannot decode two images");
}

double seconds(Pair& pair, fd::JpegDecoder& alone, const std::vector<Work>& all, feedline::memory::PixelBuffer& out) {
  const double started = thread_seconds();
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) decode(pair, all[i], all[i + 1]);
  if (all.size() % 2 == 1) decode(alone, all.back(), out);
  return thread_seconds() - started;
}

double seconds(fd::JpegDecoder& decoder, const std::vector<Work>& all, int coarseness,
               feedline::memory::Planes& planes) {
  const double started = thread_seconds();
  for (const Work& work : all)
    if (!decoder.open(work.encoded) ||
        !decoder.decode_planes(work.box, feedline::ColorMode::kRgb, {coarseness, coarseness}, planes))
      fail("cannot decode an image to planes");
  return thread_seconds() - started;
}

void expect_equal(const Work& work, feedline::memory::PixelBuffer& a, feedline::memory::PixelBuffer& b) {
  for (int y = 0; y < work.box.height; ++y)
    if (std::memcmp(a.row(y), b.row(y), std::size_t{3} * static_cast<std::size_t>(work.box.width)) != 0)
      fail("pixels differ");
}

void check_equal(Pair& pair, fd::JpegDecoder& theirs, const std::vector<Work>& all) {
  feedline::memory::PixelBuffer out;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    decode(pair, all[i], all[i + 1]);
    decode(theirs, all[i], out);
    expect_equal(all[i], pair.first_out, out);
    decode(theirs, all[i + 1], out);
    expect_equal(all[i + 1], pair.second_out, out);
  }
}

// The share of the images that our decoder supports.
double check_equal(fd::JpegDecoder& ours, fd::JpegDecoder& theirs, const std::vector<Work>& all) {
  feedline::memory::PixelBuffer a, b;
  std::size_t taken = 0;
  for (const Work& work : all) {
    decode(ours, work, a);
    decode(theirs, work, b);
    taken += ours.used_baseline() || ours.used_progressive();
    expect_equal(work, a, b);
  }
  return static_cast<double>(taken) / static_cast<double>(all.size());
}

const fd::baseline::Kernels& kernels_called(const std::string& name) {
  std::string known;
  for (const auto* kernels : fd::baseline::all_kernels()) {
    if (name.empty() || name == "-" || name == kernels->name) return *kernels;
    known += std::string(" ") + kernels->name;
  }
  fail("no variant " + name + "; this machine has" + known);
}

// Boxes in the same images, one per later epoch.
std::vector<Work> drawn_again(const std::vector<Work>& all, int side, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Work> next = all;
  fd::JpegDecoder decoder;
  for (Work& work : next) {
    const auto header = decoder.open(work.encoded);
    work.box = draw_box(header->width, header->height, side, random);
  }
  return next;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: jpeg_regions FOLDER [ROUNDS] [IMAGES] [as-is|standard|optimised|progressive] [VARIANT] [COARSENESS] "
        "[CROP]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  const auto images = static_cast<std::size_t>(argc > 3 ? std::max(1, std::atoi(argv[3])) : 500);
  const std::string tables = argc > 4 ? argv[4] : "as-is";
  const int side = argc > 7 ? std::atoi(argv[7]) : 0;
  const std::vector<Work> all = read_work(argv[1], images, tables, side);
  const fd::baseline::Kernels& kernels = kernels_called(argc > 5 ? argv[5] : "");
  fd::JpegDecoder ours(&kernels), theirs(nullptr);
  const double taken = check_equal(ours, theirs, all);
  const int coarseness = argc > 6 ? std::atoi(argv[6]) : 0;
  feedline::memory::PixelBuffer out;
  feedline::memory::Planes planes;
  const auto our_seconds = [&] {
    return coarseness > 0 ? seconds(ours, all, coarseness, planes) : seconds(ours, all, out);
  };
  Pair pair(kernels);
  check_equal(pair, theirs, all);
  std::vector<double> mine, other, ratios, paired, gains;
  fd::MemoryCheckpoints store;
  fd::JpegDecoder from_checkpoints(&kernels);
  from_checkpoints.use_checkpoints(&store);
  for (unsigned seed = 2; seed < 5; ++seed)  // earlier epochs
    (void)check_equal(from_checkpoints, theirs, drawn_again(all, side, seed));
  (void)check_equal(from_checkpoints, theirs, all);
  std::size_t stored = 0, encoded = 0;
  for (const auto& [key, entry] : store.entries) stored += entry.size();
  for (const Work& work : all) encoded += work.encoded.size();
  std::vector<double> first, later, later_gains;
  for (int round = 0; round < rounds; ++round) {
    // the order alternates, so that neither always has a warm or throttled core
    if (round % 2 == 0) mine.push_back(our_seconds());
    other.push_back(seconds(theirs, all, out));
    if (round % 2 == 1) mine.push_back(our_seconds());
    ratios.push_back(other.back() / mine.back());
    paired.push_back(seconds(pair, ours, all, out));
    gains.push_back(mine.back() / paired.back());
    later.push_back(seconds(from_checkpoints, all, out));
    later_gains.push_back(mine.back() / later.back());
    const auto entries = std::exchange(store.entries, {});
    first.push_back(seconds(from_checkpoints, all, out));
    store.entries = entries;
  }
  const double count = static_cast<double>(all.size());
  std::printf(
      "{\"images\": %zu, \"tables\": \"%s\", \"variant\": \"%s\", \"coarseness\": %d, \"taken\": %.3f, "
      "\"ratio_median\": %.3f, "
      "\"ratio_min\": %.3f, "
      "\"ms_ours\": %.4f, \"ms_libjpeg\": %.4f, \"in_turn_gain_median\": %.3f, \"ms_in_turn\": %.4f, "
      "\"crop\": %d, \"ms_first\": %.4f, \"ms_checkpoints\": %.4f, \"checkpoints_gain_median\": %.3f, "
      "\"checkpoint_bytes_share\": %.5f}\n",
      all.size(), tables.c_str(), kernels.name, coarseness, taken, median(ratios), *std::ranges::min_element(ratios),
      1e3 * *std::ranges::min_element(mine) / count, 1e3 * *std::ranges::min_element(other) / count, median(gains),
      1e3 * *std::ranges::min_element(paired) / count, side, 1e3 * *std::ranges::min_element(first) / count,
      1e3 * *std::ranges::min_element(later) / count, median(later_gains),
      static_cast<double>(stored) / static_cast<double>(encoded));
  return 0;
}
