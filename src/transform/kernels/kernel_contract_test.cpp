// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/kernel_contract.h"

#include <algorithm>
#include <cstring>

#include "base/rounds.h"
#include "transform/kernels/pointwise.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

constexpr std::uint8_t kGuard = 0xA5;

std::uint8_t pixel(std::int64_t sum) {
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

// Applies the table's weights one pixel at a time.
std::vector<std::uint8_t> expected_row(const std::vector<std::uint8_t>& in, const AxisTable& table, int channels) {
  std::vector<std::uint8_t> out;
  for (int i = 0; i < table.count(); ++i)
    for (int c = 0; c < channels; ++c) {
      std::int64_t sum = 0;
      for (int t = 0; t < table.used(i); ++t)
        sum += std::int64_t{table.weights(i)[t]} * in[static_cast<std::size_t>((table.first(i) + t) * channels + c)];
      out.push_back(pixel(sum));
    }
  return out;
}

bool only_guards(const std::vector<std::uint8_t>& bytes, std::size_t from) {
  return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(),
                     [](std::uint8_t byte) { return byte == kGuard; });
}

AxisRequest random_request(std::mt19937& random) {
  const auto number = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  AxisRequest request;
  request.in = number(0, 3) == 0 ? number(1, 9) : number(1, 700);
  request.out = number(0, 3) == 0 ? number(1, 9) : number(1, 300);
  request.begin = number(0, request.out - 1);
  request.count = number(1, request.out - request.begin);
  request.interpolation = static_cast<Interpolation>(number(0, 3));
  request.reversed = number(0, 1) == 1;
  return request;
}

// The ImageNet constants, for which there is a proof, and a table of arbitrary values, for which there is none.
struct Lookups {
  Pointwise pointwise{3};
  explicit Lookups(DType dtype) {
    pointwise.normalize({{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}});
    pointwise.convert(dtype, false);
    pointwise.finish();
  }
};

template <typename T>
T guard() {
  T value;
  std::memset(&value, kGuard, sizeof value);
  return value;
}

template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace

TEST_P(KernelContract, HorizontalPassIsExact) {
  AxisTable table;
  RowPlan plan;
  for (int round = 0; round < base::rounds(3000, 4); ++round) {
    const AxisRequest request = random_request(random_);
    const AxisSpan span = source_span(request);
    table.compute(request, span.begin);
    plan.table = &table;
    plan.channels = round % 3 == 0 ? 1 : 3;
    plan.in_width = span.end - span.begin;
    kernels().plan_row(plan);
    const auto in_bytes = static_cast<std::size_t>(plan.in_width * plan.channels);
    const auto out_bytes = static_cast<std::size_t>(table.count() * plan.channels);
    const std::vector<std::uint8_t> in = bytes(in_bytes + kReadSlack);
    std::vector<std::uint8_t> out(out_bytes + kWriteSlack + 16, kGuard);
    kernels().horizontal(in.data(), plan, out.data());
    ASSERT_TRUE(only_guards(out, out_bytes + kWriteSlack));
    out.resize(out_bytes);
    ASSERT_EQ(out, expected_row(in, table, plan.channels))
        << request.in << " to " << request.out << " from " << request.begin << " by "
        << static_cast<int>(request.interpolation) << ", " << plan.channels << " channels";
  }
}

TEST_P(KernelContract, VerticalPassIsExact) {
  AxisTable table;
  for (int round = 0; round < base::rounds(2000, 4); ++round) {
    const AxisRequest request = random_request(random_);
    table.compute(request, 0);
    const int row = number(0, table.count() - 1);
    const int taps = table.used(row);
    const auto count = static_cast<std::size_t>(number(1, 400));
    std::vector<std::vector<std::uint8_t>> rows;
    std::vector<const std::uint8_t*> pointers;
    for (int t = 0; t < taps; ++t) rows.push_back(bytes(count + kReadSlack));
    for (const auto& one : rows) pointers.push_back(one.data());
    std::vector<std::uint8_t> out(count + kWriteSlack + 16, kGuard);
    kernels().vertical(pointers.data(), table.weights(row), taps, count, out.data());
    ASSERT_TRUE(only_guards(out, count + kWriteSlack));
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t sum = 0;
      for (int t = 0; t < taps; ++t)
        sum += std::int64_t{table.weights(row)[t]} * pointers[static_cast<std::size_t>(t)][i];
      ASSERT_EQ(out[i], pixel(sum)) << taps << " taps, byte " << i << " of " << count;
    }
  }
}

TEST_P(KernelContract, SplitsChannels) {
  for (int width = 1; width < 220; ++width) {
    const std::vector<std::uint8_t> in = bytes(static_cast<std::size_t>(width) * 3);
    std::vector<std::uint8_t> planes[3];
    std::uint8_t* pointers[3];
    for (std::size_t c = 0; c < 3; ++c) {
      planes[c].assign(static_cast<std::size_t>(width) + 64, kGuard);
      pointers[c] = planes[c].data();
    }
    kernels().split(in.data(), width, pointers);
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x) ASSERT_EQ(planes[c][x], in[x * 3 + c]);
      ASSERT_TRUE(only_guards(planes[c], static_cast<std::size_t>(width))) << width;
    }
  }
}

// The result must be close to that of the exact formula, and identical to that of the scalar kernels.
TEST_P(KernelContract, MakesRgbOfEveryColour) {
  std::vector<std::uint8_t> y(256 + kReadSlack), cb = y, cr = y;
  for (std::size_t i = 0; i < 256; ++i) cr[i] = static_cast<std::uint8_t>(i);
  std::vector<std::uint8_t> got(256 * 3), expected = got;
  const auto near = [](std::uint8_t value, double wanted) {
    return std::abs(value - std::clamp(wanted, 0.0, 255.0)) <=
           0.57;  // half a level, and twice half a bit of kGreenBits
  };
  for (const int luma : {0, 1, 64, 127, 128, 200, 254, 255})
    for (int blue = 0; blue < 256; ++blue) {
      std::fill_n(y.begin(), 256, static_cast<std::uint8_t>(luma));
      std::fill_n(cb.begin(), 256, static_cast<std::uint8_t>(blue));
      scalar_kernels().ycc_to_rgb(y.data(), cb.data(), cr.data(), 256, expected.data());
      kernels().ycc_to_rgb(y.data(), cb.data(), cr.data(), 256, got.data());
      ASSERT_EQ(got, expected) << luma << " " << blue;
      for (int red = 0; red < 256; ++red) {
        const std::uint8_t* const pixel = got.data() + red * 3;
        ASSERT_TRUE(near(pixel[0], luma + 1.402 * (red - 128)) &&
                    near(pixel[1], luma - 0.344136 * (blue - 128) - 0.714136 * (red - 128)) &&
                    near(pixel[2], luma + 1.772 * (blue - 128)))
            << luma << " " << blue << " " << red;
      }
    }
  for (int width = 1; width < 200; ++width) {
    const auto row = bytes(static_cast<std::size_t>(width) + kReadSlack);
    std::vector<std::uint8_t> out(static_cast<std::size_t>(width) * 3 + 256, kGuard);
    kernels().ycc_to_rgb(row.data(), row.data(), row.data(), width, out.data());
    ASSERT_TRUE(only_guards(out, static_cast<std::size_t>(width) * 3)) << width;
  }
}

template <typename T, typename Lookup>
void check_plane(Lookup lookup, const T* table, const PointwiseConstants* proved, std::mt19937& random) {
  for (int count = 1; count < 140; ++count) {
    for (const bool reversed : {false, true}) {
      std::vector<std::uint8_t> in(static_cast<std::size_t>(count));
      for (std::uint8_t& byte : in) byte = static_cast<std::uint8_t>(random());
      std::vector<T> expected(in.size() + 40, guard<T>());
      for (std::size_t i = 0; i < in.size(); ++i) expected[i] = table[in[reversed ? in.size() - 1 - i : i]];
      std::vector<T> out(expected.size(), guard<T>());
      lookup(in.data(), count, reversed, table, proved, out.data());
      ASSERT_TRUE(same(out, expected)) << count << (reversed ? " reversed" : "");
    }
  }
}

TEST_P(KernelContract, LooksUpEveryByteOfAPlane) {
  const Lookups wide(DType::kFloat32);
  const Lookups narrow(DType::kFloat16);
  ASSERT_TRUE(wide.pointwise.proved() && narrow.pointwise.proved());
  float noise[256];
  std::uint16_t half_noise[256];
  for (std::size_t i = 0; i < 256; ++i)
    noise[i] = static_cast<float>(half_noise[i] = static_cast<std::uint16_t>(random_()));
  for (int c = 0; c < 3; ++c) {
    check_plane(kernels().lookup_float32, wide.pointwise.float32_tables()[c], wide.pointwise.proved() + c, random_);
    check_plane(kernels().lookup_float16, narrow.pointwise.float16_tables()[c], narrow.pointwise.proved() + c, random_);
  }
  check_plane<float>(kernels().lookup_float32, noise, nullptr, random_);
  check_plane<std::uint16_t>(kernels().lookup_float16, half_noise, nullptr, random_);
}

template <typename T, typename Lookup>
void check_pixels(Lookup lookup, const T (*tables)[256], const PointwiseConstants* proved, std::mt19937& random) {
  for (int pixels = 1; pixels < 90; ++pixels) {
    std::vector<std::uint8_t> in(static_cast<std::size_t>(pixels) * 3);
    for (std::uint8_t& byte : in) byte = static_cast<std::uint8_t>(random());
    std::vector<T> expected(in.size() + 40, guard<T>());
    for (std::size_t i = 0; i < in.size(); ++i) expected[i] = tables[i % 3][in[i]];
    std::vector<T> out(expected.size(), guard<T>());
    lookup(in.data(), pixels, tables, proved, out.data());
    ASSERT_TRUE(same(out, expected)) << pixels;
  }
}

TEST_P(KernelContract, LooksUpEveryByteOfInterleavedPixels) {
  const Lookups wide(DType::kFloat32);
  const Lookups narrow(DType::kFloat16);
  for (const bool proved : {true, false}) {
    check_pixels(kernels().lookup_rgb_float32, wide.pointwise.float32_tables(),
                 proved ? wide.pointwise.proved() : nullptr, random_);
    check_pixels(kernels().lookup_rgb_float16, narrow.pointwise.float16_tables(),
                 proved ? narrow.pointwise.proved() : nullptr, random_);
  }
}

// Every product and sum is rounded, so the result does not depend on how an instruction set fuses them.
TEST_P(KernelContract, BlendsRowsAsTorchRoundsThem) {
  std::normal_distribution<float> normal(0, 2);
  for (std::size_t count = 0; count < 150; ++count) {
    const float share = static_cast<float>(number(0, 1000)) / 1000, rest = 1 - share;
    std::vector<float> own(count + 1, guard<float>()), partner(count), expected = own;
    std::vector<std::uint16_t> halves(count + 1, guard<std::uint16_t>()), others(count), expected_halves = halves;
    for (std::size_t i = 0; i < count; ++i) {
      own[i] = normal(random_), partner[i] = normal(random_);
      // products and the sum are exact in double, or nearly so, and then rounded to the nearest float
      const auto a = static_cast<float>(double{own[i]} * share), b = static_cast<float>(double{partner[i]} * rest);
      expected[i] = static_cast<float>(double{a} + b);
      halves[i] = to_half(own[i]), others[i] = to_half(partner[i]);
      const float c = from_half(to_half(from_half(halves[i]) * share));
      const float d = from_half(to_half(from_half(others[i]) * rest));
      expected_halves[i] = to_half(c + d);
    }
    kernels().blend_float32(own.data(), partner.data(), count, share, rest);
    kernels().blend_float16(halves.data(), others.data(), count, share, rest);
    ASSERT_TRUE(same(own, expected)) << count;
    ASSERT_TRUE(same(halves, expected_halves)) << count;
  }
}

// The points of a row at random positions inside a volume that ends with its last neighbour.
TEST_P(KernelContract, InterpolatesTheRowsOfVolumes) {
  for (int round = 0; round < 200; ++round) {
    const std::int64_t x = number(2, 9), y = number(2, 9), z = number(2, 9);
    std::vector<float> floats(x * y * z);
    std::vector<std::int16_t> shorts(x * y * z);
    for (std::size_t i = 0; i < floats.size(); ++i)
      floats[i] = static_cast<float>(shorts[i] = static_cast<std::int16_t>(number(-32768, 32767)));
    const int count = number(1, 70);
    LinearRow points{.plane = y * z, .row = z, .begin = number(0, count - 1), .end = count};
    const auto coordinate = [&](std::int64_t size) {  // a little less than the last voxel
      return std::uniform_real_distribution<float>(0, static_cast<float>(size - 1) * 0.999f)(random_);
    };
    const std::array<std::int64_t, 3> sizes{x, y, z};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      points.first[axis] = coordinate(sizes[axis]);
      points.step[axis] = (coordinate(sizes[axis]) - points.first[axis]) / static_cast<float>(count);
    }
    std::vector<float> expected(count + 1, guard<float>()), of_floats = expected, of_shorts = expected;
    for (std::int64_t k = points.begin; k < count; ++k) {
      double sum = 0;
      for (int corner = 0; corner < 8; ++corner) {
        double weight = 1;
        std::int64_t at = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const double p = points.first[axis] + static_cast<double>(k) * points.step[axis], low = std::floor(p);
          const bool next = (corner >> axis & 1) != 0;
          weight *= next ? p - low : 1 - (p - low);
          at = at * sizes[axis] + std::min(static_cast<std::int64_t>(low) + next, sizes[axis] - 1);
        }
        sum += weight * floats[at];
      }
      expected[k] = static_cast<float>(sum);
    }
    kernels().linear_row_float32(floats.data(), points, of_floats.data());
    kernels().linear_row_int16(shorts.data(), points, of_shorts.data());
    for (int k = 0; k <= count; ++k) ASSERT_NEAR(of_floats[k], expected[k], 0.5) << k;
    linear_row(floats.data(), points, expected.data());
    ASSERT_TRUE(same(of_floats, expected));
    ASSERT_TRUE(same(of_shorts, expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelContract, ::testing::ValuesIn(all_kernels()), name_of_kernels);

}  // namespace feedline::transform
