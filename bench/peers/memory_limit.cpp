// SPDX-License-Identifier: Apache-2.0

// Measures how fast one thread copies without a loader: the minimum cost of a batch of rows or token windows on this
// machine. Contains no code of Feedline.
//
// usage: memory_limit gather | memory_limit widen TOKENS | memory_limit copy TOKENS; TOKENS is a file of uint16.
// gather: 256 random rows of 200,000, with 64 bytes each. widen: 32 windows of 1,024 at random positions of the mapped
// file, and the same shifted by one, uint16 to int64. copy: the same windows without widening.
// Prints one line of JSON.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kRows = 200'000, kColumns = 16, kRowBatch = 256;
constexpr std::size_t kWindow = 1024, kWindowBatch = 32;
constexpr int kRepeats = 9;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "memory_limit: %s\n", what.c_str());
  std::exit(3);
}

std::vector<std::uint32_t> permutation(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::shuffle(order, std::mt19937(1));
  return order;
}

// Returns the seconds of the fastest repeat, after a warm-up.
template <typename Pass>
double least_seconds(Pass pass) {
  double least = 1e30;
  for (int i = 0; i < kRepeats; ++i) {
    const auto started = std::chrono::steady_clock::now();
    pass();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  return least;
}

template <typename T>
void keep(const T& written) {  // prevents the compiler from removing unused results
  asm volatile("" : : "g"(written.data()) : "memory");
}

double gathered_rows_per_s() {
  std::vector<float> rows(kRows * kColumns, 1.0f), out(kRowBatch * kColumns);
  const auto order = permutation(kRows);
  const std::size_t used = kRows / kRowBatch * kRowBatch;
  const double seconds = least_seconds([&] {
    for (std::size_t i = 0; i < used; ++i) {
      std::memcpy(&out[i % kRowBatch * kColumns], &rows[order[i] * kColumns], kColumns * sizeof(float));
      if (i % kRowBatch == kRowBatch - 1) keep(out);
    }
  });
  return static_cast<double>(used) / seconds;
}

struct Tokens {
  const std::uint16_t* data;
  std::size_t count;
};

Tokens mapped(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (file < 0 || fstat(file, &about) != 0) fail(std::string("cannot read ") + path);
  const auto size = static_cast<std::size_t>(about.st_size);
  void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) fail(std::string("cannot map ") + path);
  return {static_cast<const std::uint16_t*>(at), size / sizeof(std::uint16_t)};
}

// Writes both outputs of a batch, x and the same shifted by one, as Out.
template <typename Out>
double windows_per_s(const char* path) {
  const Tokens tokens = mapped(path);
  if (tokens.count <= kWindow * kWindowBatch) fail("too few tokens");
  const auto order = permutation((tokens.count - 1) / kWindow);
  const std::size_t used = order.size() / kWindowBatch * kWindowBatch;
  std::vector<Out> x(kWindow * kWindowBatch), y(kWindow * kWindowBatch);
  const double seconds = least_seconds([&] {
    for (std::size_t i = 0; i < used; ++i) {
      const std::uint16_t* from = tokens.data + std::size_t{order[i]} * kWindow;
      const std::size_t row = i % kWindowBatch * kWindow;
      std::copy_n(from, kWindow, &x[row]);
      std::copy_n(from + 1, kWindow, &y[row]);
      if (i % kWindowBatch == kWindowBatch - 1) {
        keep(x);
        keep(y);
      }
    }
  });
  return static_cast<double>(used) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  double per_s = 0;
  if (what == "gather" && argc == 2)
    per_s = gathered_rows_per_s();
  else if (what == "widen" && argc == 3)
    per_s = windows_per_s<std::int64_t>(argv[2]);
  else if (what == "copy" && argc == 3)
    per_s = windows_per_s<std::uint16_t>(argv[2]);
  else {
    std::fprintf(stderr, "usage: memory_limit gather | widen TOKENS | copy TOKENS\n");
    return 2;
  }
  std::printf("{\"samples_per_s\": %.1f}\n", per_s);
  return 0;
}
