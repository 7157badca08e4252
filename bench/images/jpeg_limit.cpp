// SPDX-License-Identifier: Apache-2.0

// Measures libjpeg-turbo without a loader: threads that only decode the given boxes of images in memory. Contains no
// code of Feedline, so the limit does not change with it.
//
// usage: jpeg_limit BOXES THREADS EPOCHS; a line of BOXES is "left top width height path". Prints one line of JSON.

#include <cstdio>

#include <jpeglib.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Work {
  int left = 0, top = 0, width = 0, height = 0;
  std::vector<unsigned char> encoded;
};

std::vector<Work> read_work(const char* path) {
  std::vector<Work> all;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Work work;
    std::string file;
    fields >> work.left >> work.top >> work.width >> work.height >> std::ws;
    std::getline(fields, file);
    std::ifstream stream(file, std::ios::binary);
    work.encoded.assign(std::istreambuf_iterator<char>(stream), {});
    if (work.encoded.empty()) {
      std::fprintf(stderr, "jpeg_limit: cannot read %s\n", file.c_str());
      std::exit(3);
    }
    all.push_back(std::move(work));
  }
  return all;
}

// Two additional columns on each side keep fancy upsampling exact at the box's edges.
constexpr int kMargin = 2;

void decode(jpeg_decompress_struct& jpeg, const Work& work, std::vector<unsigned char>& row) {
  jpeg_mem_src(&jpeg, work.encoded.data(), work.encoded.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  const int right = std::min(static_cast<int>(jpeg.output_width), work.left + work.width + kMargin);
  auto x = static_cast<JDIMENSION>(std::max(0, work.left - kMargin));
  auto width = static_cast<JDIMENSION>(right) - x;
  jpeg_crop_scanline(&jpeg, &x, &width);
  if (work.top > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(work.top));
  row.resize(std::size_t{3} * jpeg.output_width + 64);
  unsigned char* to = row.data();
  for (int y = 0; y < work.height; ++y) jpeg_read_scanlines(&jpeg, &to, 1);
  jpeg_abort_decompress(&jpeg);
}

double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void decode_all(const std::vector<Work>& all, int threads) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    jpeg_decompress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    std::vector<unsigned char> row;
    for (std::size_t i; (i = next.fetch_add(1)) < all.size();) decode(jpeg, all[i], row);
    jpeg_destroy_decompress(&jpeg);
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(run);
  for (std::thread& thread : pool) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: jpeg_limit BOXES THREADS EPOCHS\n");
    return 2;
  }
  const std::vector<Work> all = read_work(argv[1]);
  const int threads = std::atoi(argv[2]), epochs = std::atoi(argv[3]);
  decode_all(all, threads);  // warm-up
  const double cpu_before = cpu_s();
  const auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < epochs; ++i) decode_all(all, threads);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const double images = static_cast<double>(all.size()) * epochs;
  std::printf("{\"images\": %.0f, \"images_per_s\": %.1f, \"cpu_s_per_1000_images\": %.4f, \"threads\": %d}\n", images,
              images / wall, 1000 * (cpu_s() - cpu_before) / images, threads);
  return 0;
}
