// SPDX-License-Identifier: Apache-2.0

// Compares the GPU's kernels, run on the CPU, with the engine's CPU path: conversion and normalization by the emitter,
// rectangles by the eraser, MixUp and CutMix by the functions that mix finished rows.

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/cuda/kernels/launch.h"
#include "transform/kernels/emitter.h"
#include "transform/kernels/pointwise.h"
#include "transform/kernels/variants.h"
#include "transform/mixup.h"
#include "transform/noise.h"

namespace feedline::pipeline {
namespace {

namespace cuda = device::cuda;
using cuda::Element;
using transform::Mix;

struct Drawn {
  bool mirrored = false;
  std::vector<transform::Erasure> erasures;
};

// A batch that both the CPU path and the kernel compute; its shape is drawn from the seed.
class Batch {
 public:
  Batch(std::uint32_t seed, DType dtype, Layout layout, bool normalized)
      : random_(seed), dtype_(dtype), layout_(layout), pointwise_(1) {
    channels_ = number(0, 3) == 0 ? 1 : 3;
    // sometimes more pixels than one block has
    size_ = number(0, 9) == 0 ? Size{number(60, 90), number(60, 90)} : Size{number(1, 37), number(1, 37)};
    rows_ = static_cast<std::size_t>(number(1, 6));
    pointwise_ = transform::Pointwise(channels_);
    if (normalized) {
      op::Normalize normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
      if (channels_ == 1) normalize = {{0.5f}, {0.25f}};
      pointwise_.normalize(normalize);
      operations_ = {normalize};
    }
    if (dtype_ != DType::kUint8) {
      pointwise_.convert(dtype_, true);
      operations_.push_back(op::ToDtype{dtype_, true});
    }
    pointwise_.finish();
    operations_.insert(operations_.begin(), op::RandomErasing{});
    pixels_.resize(rows_ * row_elements());
    for (std::uint8_t& pixel : pixels_) pixel = static_cast<std::uint8_t>(random_());
  }

  std::size_t rows() const { return rows_; }
  Size size() const { return size_; }
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  std::size_t row_elements() const { return static_cast<std::size_t>(size_.width * size_.height * channels_); }
  std::size_t element_bytes() const { return feedline::size_of(dtype_); }

  void draw(bool with_erasures) {
    drawn_.assign(rows_, {});
    for (std::size_t row = 0; row < rows_; ++row) {
      drawn_[row].mirrored = number(0, 1) == 1;
      for (int i = with_erasures ? number(0, 3) : 0; i > 0; --i) {
        const int width = number(1, size_.width), height = number(1, size_.height);
        transform::Erasure erasure;
        erasure.box = {number(0, size_.width - width), number(0, size_.height - height), width, height};
        erasure.value = {0.25f, -3.5f, 1e-6f};
        if (number(0, 1) == 1) {
          base::Random stream({static_cast<std::uint64_t>(number(0, 1000)), 0, row}, 7);
          erasure.noise = stream.blocks(static_cast<std::uint32_t>(i) << 24);
        }
        drawn_[row].erasures.push_back(erasure);
      }
    }
  }

  // Returns the result of the engine's CPU path, without mixing.
  std::vector<std::byte> on_cpu() const {
    const transform::Kernels& kernels = transform::active_kernels();
    const transform::Emitter emitter(pointwise_, channels_, size_, layout_);
    const transform::OutputEraser eraser(operations_, 0, layout_);
    std::vector<std::byte> out(rows_ * row_elements() * element_bytes() + transform::kWriteSlack);
    std::vector<std::uint8_t> scratch, line(static_cast<std::size_t>(size_.width * channels_) + transform::kReadSlack);
    transform::NoiseScratch noise;
    for (std::size_t row = 0; row < rows_; ++row) {
      std::byte* const to = out.data() + row * row_elements() * element_bytes();
      for (int y = 0; y < size_.height; ++y) {
        const auto width = static_cast<std::size_t>(size_.width * channels_);
        std::memcpy(line.data(), pixels_.data() + row * row_elements() + static_cast<std::size_t>(y) * width, width);
        emitter.emit(line.data(), y, drawn_[row].mirrored, kernels, scratch, to);
      }
      for (const transform::Erasure& erasure : drawn_[row].erasures)
        eraser.erase(erasure, kernels, noise, {to, emitter.spec()});
    }
    out.resize(rows_ * row_elements() * element_bytes());
    return out;
  }

  transform::MixedRows mixed_rows(std::vector<std::byte>& of) const {
    return {of.data(), dtype_, size_, channels_, layout_};
  }

  // Returns the result of the kernel. mixed: one element for each output row; empty if rows are not mixed.
  std::vector<std::byte> by_kernel(const std::vector<cuda::MixedRow>& mixed = {}) const {
    return by_kernel(mixed, element(), tables());
  }
  std::vector<std::byte> by_kernel(const std::vector<cuda::MixedRow>& mixed, Element element,
                                   const std::vector<std::byte>& tables) const {
    const std::size_t bytes = cuda::size_of(element);
    std::vector<cuda::PixelRow> inputs;
    std::vector<cuda::Rectangle> rectangles;
    std::vector<std::byte> patches;
    for (const Drawn& drawn : drawn_) {
      inputs.push_back({drawn.mirrored, static_cast<std::uint32_t>(rectangles.size()),
                        static_cast<std::uint32_t>(drawn.erasures.size())});
      for (const transform::Erasure& erasure : drawn.erasures) rectangles.push_back(rectangle(erasure, patches));
    }
    cuda::PixelJob job{};
    job.rows = static_cast<std::uint32_t>(mixed.empty() ? rows_ : mixed.size());
    std::vector<std::byte> out(job.rows * row_elements() * bytes);
    job.in = pixels_.data(), job.in_stride = row_elements();
    job.out = out.data(), job.out_stride = row_elements() * bytes;
    job.tables = element == Element::kUint8 ? nullptr : tables.data();
    job.inputs = drawn_.empty() ? nullptr : inputs.data();
    job.mixed = mixed.empty() ? nullptr : mixed.data();
    job.rectangles = rectangles.data(), job.patches = patches.data();
    job.width = static_cast<std::uint32_t>(size_.width), job.height = static_cast<std::uint32_t>(size_.height);
    job.channels = static_cast<std::uint32_t>(channels_);
    job.planar = layout_ == Layout::kNchw;
    EXPECT_TRUE(cuda::check_job(job, element));
    cuda::run_on_cpu(job, element);
    return out;
  }

  Element element() const {
    return dtype_ == DType::kUint8     ? Element::kUint8
           : dtype_ == DType::kFloat32 ? Element::kFloat32
                                       : Element::kFloat16;
  }
  std::vector<std::byte> tables() const {
    const auto channels = static_cast<std::size_t>(channels_);
    std::vector<std::byte> bytes(channels * 256 * element_bytes());
    const void* const from = dtype_ == DType::kFloat16 ? static_cast<const void*>(pointwise_.float16_tables())
                                                       : static_cast<const void*>(pointwise_.float32_tables());
    std::memcpy(bytes.data(), from, bytes.size());
    return bytes;
  }

 private:
  // Returns a rectangle with one value if the erasure is constant per channel, otherwise with a patch: the eraser's
  // output on an image of the rectangle's size.
  cuda::Rectangle rectangle(const transform::Erasure& erasure, std::vector<std::byte>& patches) const {
    const Box& box = erasure.box;
    cuda::Rectangle made{box.left, box.top, box.width, box.height, {}, cuda::kNoPatch};
    transform::Erasure alone = erasure;
    alone.box = {0, 0, box.width, box.height};
    const std::size_t elements = static_cast<std::size_t>(box.width * box.height * channels_);
    std::vector<std::byte> values(elements * element_bytes());
    transform::NoiseScratch scratch;
    transform::OutputEraser(operations_, 0, Layout::kNchw)
        .erase(alone, transform::active_kernels(), scratch,
               {values.data(), {dtype_, Shape{channels_, box.height, box.width}}});
    if (erasure.noise) {
      made.patch = patches.size() / element_bytes();
      patches.insert(patches.end(), values.begin(), values.end());
    } else {
      const std::size_t plane = elements / static_cast<std::size_t>(channels_) * element_bytes();
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels_); ++c)
        std::memcpy(&made.value[c], values.data() + c * plane, element_bytes());
    }
    return made;
  }

  std::mt19937 random_;
  DType dtype_;
  Layout layout_;
  transform::Pointwise pointwise_;
  int channels_ = 3;
  Size size_{};
  std::size_t rows_ = 0;
  std::vector<Operation> operations_;
  std::vector<std::uint8_t> pixels_;
  std::vector<Drawn> drawn_;
};

cuda::MixedRow mixed_row(std::size_t own, std::size_t partner, const Mix& mix) {
  const auto kind = mix.kind == Mix::Kind::kBlend   ? cuda::MixedRow::kBlend
                    : mix.kind == Mix::Kind::kPaste ? cuda::MixedRow::kPaste
                                                    : cuda::MixedRow::kNone;
  const Box& box = mix.box;
  return {static_cast<std::uint32_t>(own),
          static_cast<std::uint32_t>(partner),
          kind,
          static_cast<float>(mix.share),
          static_cast<float>(1.0 - mix.share),
          box.left,
          box.top,
          box.left + box.width,
          box.top + box.height};
}

Mix draw_mix(Batch& batch) {
  switch (batch.number(0, 2)) {
    case 0:
      return {};
    case 1:
      return {Mix::Kind::kBlend, static_cast<float>(batch.number(0, 1000)) / 1000.0f, {}};
    default:
      const Size size = batch.size();
      return transform::paste_around(batch.number(0, 100) / 100.0, size, batch.number(0, size.width - 1),
                                     batch.number(0, size.height - 1));
  }
}

// Calls work(batch) for many shapes, with every element type and layout that the engine supports.
template <typename Work>
void each_batch(std::vector<DType> dtypes, Work work) {
  for (const DType dtype : dtypes)
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc})
      for (std::uint32_t seed = 0; seed < 20; ++seed) {
        Batch batch(seed, dtype, layout, dtype != DType::kUint8 && seed % 4 != 0);
        SCOPED_TRACE(testing::Message() << feedline::name_of(dtype) << ", seed " << seed);
        work(batch);
        if (testing::Test::HasFailure()) return;
      }
}

constexpr DType kU8 = DType::kUint8, kF32 = DType::kFloat32, kF16 = DType::kFloat16;

TEST(PixelKernels, ConvertAndMirrorAsTheEngineDoes) {
  each_batch({kU8, kF32, kF16}, [](Batch& batch) {
    batch.draw(false);
    EXPECT_EQ(batch.by_kernel(), batch.on_cpu());
  });
}

TEST(PixelKernels, WriteOverRectanglesAsTheEngineDoes) {
  each_batch({kF32, kF16}, [](Batch& batch) {
    batch.draw(true);
    EXPECT_EQ(batch.by_kernel(), batch.on_cpu());
  });
}

TEST(PixelKernels, RollAndMixAsTheEngineDoes) {
  each_batch({kF32, kF16}, [](Batch& batch) {
    batch.draw(true);
    const std::size_t rows = batch.rows();
    if (rows < 2) return;
    const Mix mix = draw_mix(batch);
    std::vector<std::byte> expected = batch.on_cpu();
    transform::mix_rolled(batch.mixed_rows(expected), rows, mix);
    std::vector<cuda::MixedRow> mixed;
    for (std::size_t row = 0; row < rows; ++row) mixed.push_back(mixed_row(row, (row + rows - 1) % rows, mix));
    EXPECT_EQ(batch.by_kernel(mixed), expected);
  });
}

TEST(PixelKernels, MixInPairsAsTheEngineDoes) {
  each_batch({kF32, kF16}, [](Batch& batch) {
    batch.draw(true);
    const std::size_t rows = batch.rows();
    std::vector<std::byte> expected = batch.on_cpu();
    std::vector<cuda::MixedRow> mixed(rows, mixed_row(rows / 2, rows / 2, {}));
    for (std::size_t first = 0; first < rows / 2; ++first) {
      const std::size_t second = rows - 1 - first;
      const Mix of_first = draw_mix(batch), of_second = draw_mix(batch);
      transform::mix_both(batch.mixed_rows(expected), first, second, of_first, of_second);
      mixed[first] = mixed_row(first, second, of_first), mixed[second] = mixed_row(second, first, of_second);
    }
    EXPECT_EQ(batch.by_kernel(mixed), expected);
  });
}

// As in timm's mode "half", the output has half of the rows.
TEST(PixelKernels, MixHalfOfTheRowsWithTheOthers) {
  each_batch({kF32, kF16}, [](Batch& batch) {
    batch.draw(true);
    const std::size_t rows = batch.rows(), half = (rows + 1) / 2;
    std::vector<std::byte> expected = batch.on_cpu();
    std::vector<cuda::MixedRow> mixed;
    for (std::size_t row = 0; row < half; ++row) {
      const Mix mix = row == rows - 1 - row ? Mix() : draw_mix(batch);
      transform::mix_one(batch.mixed_rows(expected), row, rows - 1 - row, mix);
      mixed.push_back(mixed_row(row, rows - 1 - row, mix));
    }
    expected.resize(half * batch.row_elements() * batch.element_bytes());
    EXPECT_EQ(batch.by_kernel(mixed), expected);
  });
}

// The CPU path has no bfloat16: expects float32 rounded to bfloat16, and from there torch's arithmetic.
TEST(PixelKernels, Bfloat16IsFloat32Rounded) {
  const auto rounded = [](const std::vector<std::byte>& floats) {
    std::vector<std::uint16_t> halves(floats.size() / 4);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      float value = 0;
      std::memcpy(&value, floats.data() + i * 4, 4);
      halves[i] = cuda::to_bfloat16(value);
    }
    return halves;
  };
  const auto widened = [](std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); };
  each_batch({kF32}, [&](Batch& batch) {
    batch.draw(false);
    const auto as_bytes = [](const std::vector<std::uint16_t>& halves) {
      const auto* const from = reinterpret_cast<const std::byte*>(halves.data());
      return std::vector<std::byte>(from, from + halves.size() * 2);
    };
    const std::vector<std::byte> tables = as_bytes(rounded(batch.tables()));
    const std::vector<std::uint16_t> plain = rounded(batch.on_cpu());
    EXPECT_EQ(batch.by_kernel({}, Element::kBfloat16, tables), as_bytes(plain));

    const Mix mix{Mix::Kind::kBlend, 0.3f, {}};
    const auto share = static_cast<float>(mix.share), rest = static_cast<float>(1.0 - mix.share);
    const std::size_t rows = batch.rows(), elements = batch.row_elements();
    std::vector<cuda::MixedRow> mixed;
    std::vector<std::uint16_t> expected(plain.size());
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t partner = (row + 1) % rows;
      mixed.push_back(mixed_row(row, partner, mix));
      for (std::size_t i = 0; i < elements; ++i) {
        const float own = widened(cuda::to_bfloat16(widened(plain[row * elements + i]) * share));
        const float other = widened(cuda::to_bfloat16(widened(plain[partner * elements + i]) * rest));
        expected[row * elements + i] = cuda::to_bfloat16(own + other);
      }
    }
    EXPECT_EQ(batch.by_kernel(mixed, Element::kBfloat16, tables), as_bytes(expected));
  });
}

// Later rectangles overwrite earlier ones; bytes are overwritten without conversion.
TEST(PixelKernels, BytesAreWrittenOverToo) {
  const std::vector<std::uint8_t> pixels(4 * 3 * 3, 9);
  std::vector<std::uint8_t> out(pixels.size());
  const std::vector<cuda::Rectangle> rectangles = {{0, 0, 3, 2, {1, 2, 3}, cuda::kNoPatch},
                                                   {1, 1, 3, 2, {4, 5, 6}, cuda::kNoPatch}};
  const std::vector<cuda::PixelRow> inputs = {{1, 0, 2}};
  cuda::PixelJob job{};
  job.in = pixels.data(), job.out = out.data(), job.in_stride = job.out_stride = 36;
  job.inputs = inputs.data(), job.rectangles = rectangles.data();
  job.rows = 1, job.width = 4, job.height = 3, job.channels = 3;
  ASSERT_TRUE(cuda::check_job(job, Element::kUint8));
  cuda::run_on_cpu(job, Element::kUint8);
  std::string first;
  for (std::size_t i = 0; i < 12; ++i) first += static_cast<char>('0' + out[i * 3]);
  EXPECT_EQ(first, "111914449444");
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ(out[(4 + 1) * 3 + 2], 6);
}

// There may be gaps between rows, which must not change.
TEST(PixelKernels, WriteNothingBetweenRows) {
  const std::vector<std::uint8_t> pixels = {1, 2, 77, 3, 4, 77};
  std::vector<std::uint8_t> out(8, 50);
  cuda::PixelJob job{};
  job.in = pixels.data(), job.in_stride = 3;
  job.out = out.data(), job.out_stride = 4;
  job.rows = 2, job.width = 2, job.height = 1, job.channels = 1, job.planar = 1;
  cuda::run_on_cpu(job, Element::kUint8);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{1, 2, 50, 50, 3, 4, 50, 50}));
}

}  // namespace
}  // namespace feedline::pipeline
