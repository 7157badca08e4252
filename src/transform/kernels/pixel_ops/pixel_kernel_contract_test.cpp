// SPDX-License-Identifier: Apache-2.0

// Every set of pixel kernels must produce the bytes of the scalar kernels for every length, also in place, and must not
// write anything else. tests/python/test_pixel_operations.py compares the scalar kernels with Pillow.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/rounds.h"
#include "transform/kernels/kernel_contract.h"
#include "transform/kernels/pixel_ops/normals.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/test_images.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

constexpr std::uint8_t kGuard = 0xA5;
constexpr std::size_t kMargin = 80;  // more than a vector
const PixelKernels& plain() { return kScalarPixelKernels; }

class PixelKernelContract : public KernelContract {
 protected:
  const PixelKernels& pixels() const { return *kernels().pixels; }

  // run(kernels, in, out) writes `written` bytes to `out`. For in-place tests, `out` is `in`, with the same length.
  template <typename Run>
  void same(const std::vector<std::uint8_t>& in, std::size_t written, bool in_place, Run run) {
    std::vector<std::uint8_t> expected(written);
    run(plain(), in.data(), expected.data());
    std::vector<std::uint8_t> out(written + 2 * kMargin, kGuard);
    run(pixels(), in.data(), out.data() + kMargin);
    for (std::size_t i = 0; i < kMargin; ++i)
      ASSERT_TRUE(out[i] == kGuard && out[kMargin + written + i] == kGuard)
          << in.size() << " bytes, outside the output";
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), out.begin() + kMargin)) << in.size() << " bytes";
    if (!in_place) return;
    std::vector<std::uint8_t> itself = in;
    run(pixels(), itself.data(), itself.data());
    ASSERT_EQ(itself, expected) << in.size() << " bytes in place";
  }

  float factor() {
    constexpr float kFactors[] = {0, 1, 0.5f, 0.999f, 1.001f, 2, -1, 1e9f, -1e9f};
    const int choice = number(0, 20);
    return choice < 9 ? kFactors[choice] : static_cast<float>(number(-4000, 4000)) / 1000;
  }
};

TEST_P(PixelKernelContract, IsASetOfItsOwn) {
  for (const Kernels* others : all_kernels())
    EXPECT_EQ(others->pixels->blend == pixels().blend, others == &kernels()) << others->name;
}

TEST_P(PixelKernelContract, LooksUp) {
  for (std::size_t count = 1; count < 420; ++count) {
    ByteTable tables[3];
    for (auto& table : tables) std::ranges::copy(bytes(256), table);
    const auto row = bytes(count), rgb = bytes(3 * count);
    const int width = static_cast<int>(count);
    same(row, count, true, [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* out) {
      k.look_up({in, width, 1, 1, count}, tables[0], out, count);
    });
    same(rgb, 3 * count, true, [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* out) {
      k.look_up_rgb({in, width, 1, 3, 3 * count}, tables, out, 3 * count);
    });
    for (const int threshold : {0, 1, 127, 128, 255})
      same(row, count, true, [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* out) {
        k.fold(in, count, static_cast<std::uint8_t>(threshold), 0x5f, 0xf3, out);
      });
    ByteRanges expected, ranges;
    plain().widen_rgb(rgb.data(), count, expected);
    pixels().widen_rgb(rgb.data(), count, ranges);
    for (int c = 0; c < 3; ++c) {
      ASSERT_EQ(ranges.low[c], expected.low[c]) << count;
      ASSERT_EQ(ranges.high[c], expected.high[c]) << count;
    }
  }
}

TEST_P(PixelKernelContract, LooksUpEveryByte) {
  std::vector<std::uint8_t> every(768);
  for (std::size_t i = 0; i < 768; ++i) every[i] = static_cast<std::uint8_t>(i);
  for (int round = 0; round < 50; ++round) {
    ByteTable tables[3];
    for (auto& table : tables)
      for (std::uint8_t& byte : table) byte = static_cast<std::uint8_t>(number(0, 255));
    std::vector<std::uint8_t> out(768);
    pixels().look_up({every.data(), 256, 1, 3, 768}, tables[0], out.data(), 768);
    for (std::size_t i = 0; i < 768; ++i) ASSERT_EQ(out[i], tables[0][i % 256]) << i;
    pixels().look_up_rgb({every.data(), 256, 1, 3, 768}, tables, out.data(), 768);
    for (std::size_t i = 0; i < 768; ++i) ASSERT_EQ(out[i], tables[i % 3][i % 256]) << i;
    // rows with gaps, which must not be changed
    std::vector<std::uint8_t> wanted(768, kGuard);
    for (std::size_t i = 0; i < 768; ++i)
      if (i % 256 < 201) wanted[i] = tables[0][every[i]];
    std::ranges::fill(out, kGuard);
    pixels().look_up({every.data(), 67, 3, 3, 256}, tables[0], out.data(), 256);
    ASSERT_EQ(out, wanted);
    for (std::size_t i = 0; i < 768; ++i)
      if (i % 256 < 201) wanted[i] = tables[i % 256 % 3][every[i]];
    pixels().look_up_rgb({every.data(), 67, 3, 3, 256}, tables, out.data(), 256);
    ASSERT_EQ(out, wanted);
  }
}

TEST_P(PixelKernelContract, WeighsColours) {
  for (std::size_t count = 1; count < 300; ++count) {
    const auto rgb = bytes(3 * count);
    same(rgb, count, false,
         [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* out) { k.luma(in, count, out); });
    ASSERT_EQ(pixels().sum_luma(rgb.data(), count), plain().sum_luma(rgb.data(), count)) << count;
  }
}

TEST_P(PixelKernelContract, Blends) {
  for (int round = 0; round < 4; ++round)
    for (std::size_t count = 1; count < 300; ++count) {
      const auto from = bytes(count), to = bytes(count), rgb = bytes(3 * count);
      const float by = factor();
      same(to, count, true, [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* out) {
        k.blend(from.data(), in, count, by, out);
      });
      same(rgb, 3 * count, true,
           [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* out) { k.saturate(in, count, by, out); });
    }
}

TEST_P(PixelKernelContract, ShiftsTheHueOfEveryColour) {
  std::vector<std::uint8_t> rgb(256 * 3), expected(256 * 3), out(256 * 3);
  for (std::size_t blue = 0; blue < 256; ++blue) rgb[blue * 3 + 2] = static_cast<std::uint8_t>(blue);
  for (int colour = 0; colour < 65536; colour += base::stride(13)) {
    // all colours once, some with each shift
    const auto shift = static_cast<std::uint8_t>(colour % 5 == 0 ? colour / 5 : 37);
    for (std::size_t blue = 0; blue < 256; ++blue) {
      rgb[blue * 3] = static_cast<std::uint8_t>(colour >> 8);
      rgb[blue * 3 + 1] = static_cast<std::uint8_t>(colour);
    }
    plain().shift_hue(rgb.data(), 256, shift, expected.data());
    pixels().shift_hue(rgb.data(), 256, shift, out.data());
    ASSERT_EQ(out, expected) << "red " << (colour >> 8) << ", green " << (colour & 255) << ", shift " << int{shift};
  }
  for (std::size_t count = 1; count < 200; ++count)
    same(bytes(3 * count), 3 * count, true,
         [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* o) { k.shift_hue(in, count, 200, o); });
}

TEST_P(PixelKernelContract, Smooths) {
  for (const int channels : {1, 3})
    for (int width = 2; width < 200; ++width) {
      const auto row_bytes = static_cast<std::size_t>(width * channels);
      const auto three = bytes(3 * row_bytes);
      same(three, row_bytes, false, [&](const PixelKernels& k, const std::uint8_t* in, std::uint8_t* out) {
        std::fill_n(out, row_bytes, kGuard);
        const std::uint8_t* const rows[] = {in, in + row_bytes, in + 2 * row_bytes};
        k.smooth(rows, width, channels, out);
      });
    }
}

TEST_P(PixelKernelContract, Blurs) {
  for (int round = 0; round < 400; ++round) {
    const int radius = number(0, 12), step = number(0, 1) ? 3 : 1;
    const auto count = static_cast<std::size_t>(number(1, 300)), edge = static_cast<std::size_t>(radius * step);
    std::vector<float> weights(static_cast<std::size_t>(radius) + 1);
    for (float& weight : weights) weight = static_cast<float>(number(1, 1000)) / 12000;
    const auto row = bytes(count + 2 * edge);
    std::vector<float> in(row.size()), wanted(count), got(count + kMargin, -1.0f);
    pixels().to_float(row.data(), row.size(), in.data());
    ASSERT_TRUE(std::ranges::equal(in, row));
    plain().blur_row(in.data() + edge, weights.data(), radius, step, count, wanted.data());
    pixels().blur_row(in.data() + edge, weights.data(), radius, step, count, got.data());
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), got.begin())) << radius << " " << step << " " << count;
    ASSERT_EQ(got[count], -1.0f);

    std::vector<std::vector<std::uint8_t>> source;
    std::vector<std::vector<float>> values;
    std::vector<const float*> rows;
    for (int i = 0; i <= 2 * radius; ++i) {
      source.push_back(bytes(count));
      values.emplace_back(source.back().begin(), source.back().end());
    }
    for (const auto& one : values) rows.push_back(one.data());
    same(source[0], count, false, [&](const PixelKernels& k, const std::uint8_t*, std::uint8_t* out) {
      k.blur_rows(rows.data(), weights.data(), radius, count, out);
    });
  }
}

TEST_P(PixelKernelContract, MakesNormals) {
  for (std::size_t groups = 0; groups < 20; ++groups) {
    const auto word = [this] { return static_cast<std::uint32_t>(random_()); };
    // block numbers may overflow
    const base::Random::Blocks blocks{{groups == 3 ? ~std::uint32_t{4} : word(), word(), word(), word()},
                                      {word(), word()}};
    std::vector<float> wanted(groups * kGroupNormals), got(wanted.size() + kMargin, 7.0f);
    plain().normals(blocks, groups, wanted.data());
    pixels().normals(blocks, groups, got.data());
    // compares bits, so that -0 and 0 differ
    if (groups > 0) ASSERT_EQ(std::memcmp(wanted.data(), got.data(), wanted.size() * sizeof(float)), 0) << groups;
    ASSERT_EQ(got[wanted.size()], 7.0f);
  }
}

TEST_P(PixelKernelContract, Mixes) {
  for (std::size_t count = 1; count < 200; ++count) {
    const auto row = bytes(count), other = bytes(count);
    const float weight = static_cast<float>(number(0, 1000)) / 1000;
    std::vector<float> wanted(count), got(count + kMargin, -1.0f);
    plain().weigh(row.data(), count, weight, wanted.data());
    pixels().weigh(row.data(), count, weight, got.data());
    plain().add_weighed(other.data(), count, 1 - weight, wanted.data());
    pixels().add_weighed(other.data(), count, 1 - weight, got.data());
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), got.begin())) << count;
    ASSERT_EQ(got[count], -1.0f);
    for (float& value : wanted) value = value * 1.5f - 50;  // both ends are clipped
    same(row, count, false,
         [&](const PixelKernels& k, const std::uint8_t*, std::uint8_t* out) { k.truncate(wanted.data(), count, out); });
  }
}

double point(std::mt19937& random, int size) {
  const int choice = std::uniform_int_distribution<int>(0, 30)(random);
  if (choice == 0) return std::nan("");
  if (choice == 1) return INFINITY;
  if (choice < 6) return std::uniform_int_distribution<int>(-1, 2 * size + 1)(random) / 2.0;
  return std::uniform_real_distribution<double>(-0.1, size + 0.1)(random);
}

TEST_P(PixelKernelContract, Samples) {
  const std::uint8_t fill[] = {1, 2, 3};
  for (int round = 0; round < 600; ++round) {
    const int channels = number(0, 1) ? 3 : 1, width = number(1, 40), height = number(1, 20);
    const TestImage image = test_image(width, height, channels, static_cast<std::uint32_t>(number(0, 9999)));
    const int count = number(1, 70);
    std::vector<double> xs, ys;
    // runs far from the borders, so that whole vectors are inside, and arbitrary positions
    const bool inner = number(0, 1) == 1;
    for (int i = 0; i < count; ++i) {
      xs.push_back(inner ? 0.3 * width + 0.001 * i * width : point(random_, width));
      ys.push_back(inner ? 0.4 * height + 0.003 * i * height : point(random_, height));
    }
    const auto samples = static_cast<std::size_t>(count * channels);
    same(image.pixels, samples, false, [&](const PixelKernels& k, const std::uint8_t*, std::uint8_t* out) {
      k.bilinear(image.view(), xs.data(), ys.data(), count, fill, out);
    });
    same(image.pixels, samples, false, [&](const PixelKernels& k, const std::uint8_t*, std::uint8_t* out) {
      k.bicubic(image.view(), xs.data(), ys.data(), count, fill, out);
    });
    const std::vector<float> grid_xs(xs.begin(), xs.end()), grid_ys(ys.begin(), ys.end());
    same(image.pixels, samples, false, [&](const PixelKernels& k, const std::uint8_t*, std::uint8_t* out) {
      k.grid(image.view(), grid_xs.data(), grid_ys.data(), count, fill, out);
    });
    same(image.pixels, samples, false, [&](const PixelKernels& k, const std::uint8_t*, std::uint8_t* out) {
      k.grid_cubic(image.view(), grid_xs.data(), grid_ys.data(), count, fill, out);
    });
  }
}

TEST_P(PixelKernelContract, FindsPlaces) {
  for (int round = 0; round < 300; ++round) {
    double numbers[8];
    for (double& n : numbers) n = std::uniform_real_distribution<double>(-1.5, 1.5)(random_);
    const int count = number(1, 90), y = number(0, 500);
    const auto size = static_cast<std::size_t>(count);
    for (const auto points : {&PixelKernels::affine_points, &PixelKernels::perspective_points}) {
      std::vector<double> xs(size), ys(size), wanted_xs(size), wanted_ys(size);
      (plain().*points)(numbers, y, count, wanted_xs.data(), wanted_ys.data());
      (pixels().*points)(numbers, y, count, xs.data(), ys.data());
      ASSERT_EQ(xs, wanted_xs);
      ASSERT_EQ(ys, wanted_ys);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, PixelKernelContract, ::testing::ValuesIn(all_kernels()), name_of_kernels);

}  // namespace
}  // namespace feedline::transform
