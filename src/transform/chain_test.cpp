// SPDX-License-Identifier: Apache-2.0
#include "transform/chain.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "base/rounds.h"
#include "transform/border.h"
#include "transform/kernels/border_source.h"
#include "transform/kernels/colour.h"
#include "transform/kernels/pixel_ops/apply.h"
#include "transform/kernels/test_images.h"
#include "transform/kernels/variants.h"
#include "transform/operation/image_operation.h"
#include "transform/steps.h"
#include "transform/test_resize.h"

namespace feedline::transform {
namespace {

constexpr base::SampleKey kKey{.seed = 1, .epoch = 2, .sample = 3};

std::shared_ptr<const Chain> compiled(const std::vector<Operation>& operations, std::optional<DType> dtype = {},
                                      Layout layout = Layout::kNchw) {
  auto chain = Chain::compile(operations, dtype, layout);
  EXPECT_TRUE(chain) << chain.error().message();
  return chain ? *chain : nullptr;
}

TestImage cropped(const TestImage& image, const Box& box) {
  TestImage out{box.width, box.height, image.channels, {}};
  for (int y = 0; y < box.height; ++y)
    for (int i = 0; i < box.width * image.channels; ++i)
      out.pixels.push_back(image.view().row(box.top + y)[box.left * image.channels + i]);
  return out;
}

TestImage flipped(const TestImage& image, bool x, bool y) {
  TestImage out = image;
  for (int row = 0; row < image.height; ++row)
    for (int column = 0; column < image.width; ++column)
      for (int c = 0; c < image.channels; ++c)
        out.pixels[static_cast<std::size_t>((row * image.width + column) * image.channels + c)] = image.view().row(
            y ? image.height - 1 - row : row)[(x ? image.width - 1 - column : column) * image.channels + c];
  return out;
}

TestImage bordered(const TestImage& image, const Padding& padding, PaddingMode mode,
                   const std::array<std::uint8_t, 3>& fill) {
  const Size whole = padded({image.height, image.width}, padding);
  TestImage out{whole.width, whole.height, image.channels, {}};
  for (int y = 0; y < whole.height; ++y)
    for (int x = 0; x < whole.width; ++x) {
      const int from_x = border_source(x - padding.left, image.width, mode);
      const int from_y = border_source(y - padding.top, image.height, mode);
      for (int c = 0; c < image.channels; ++c)
        out.pixels.push_back(from_x < 0 || from_y < 0 ? fill[static_cast<std::size_t>(c)]
                                                      : image.view().row(from_y)[from_x * image.channels + c]);
    }
  return out;
}

// Applies drawn values to whole images, one operation after another, without regions, windows or fused steps.
class StepByStep {
 public:
  StepByStep(TestImage image, std::vector<DrawnValue> values, const base::SampleKey& key)
      : image_(std::move(image)), values_(std::move(values)), key_(key) {}

  TestImage run(const std::vector<Operation>& operations) {
    each(operations);
    EXPECT_EQ(next_, values_.size());
    return image_;
  }

  void operator()(const op::Decode&) {}
  void operator()(const op::Resize& o) { resize_to_drawn(o.interpolation); }
  void operator()(const op::CenterCrop& o) {
    const CenterCropPlan plan = plan_center_crop({image_.height, image_.width}, o.size);
    image_ = bordered(image_, plan.padding, o.padding_mode, o.fill);
    image_ = cropped(image_, take_box());
  }
  void operator()(const op::TrimBorder&) { image_ = cropped(image_, take_box()); }
  void operator()(const op::RandomCropOrPad& o) {
    pad_as_drawn(o.padding_mode, o.fill);
    image_ = cropped(image_, take_box());
  }
  void operator()(const op::RandomCrop& o) {
    const RandomCropPadding plan = plan_random_crop_padding({image_.height, image_.width}, o);
    for (const Padding& padding : {plan.always, plan.width_needed, plan.height_needed})
      image_ = bordered(image_, padding, o.padding_mode, o.fill);
    image_ = cropped(image_, take_box());
  }
  void operator()(const op::RandomResizedCrop& o) {
    image_ = resized(cropped(image_, take_box()), o.size, o.interpolation);
  }
  void operator()(const op::RandomHorizontalFlip&) { image_ = flipped(image_, take("flip")[0] == 1, false); }
  void operator()(const op::RandomVerticalFlip&) { image_ = flipped(image_, false, take("flip")[0] == 1); }
  void operator()(const op::Pad& o) {
    take("padding");
    image_ = bordered(image_, o.padding, o.padding_mode, o.fill);
  }
  void operator()(const op::Grayscale& o) {
    memory::PixelBuffer out;
    EXPECT_TRUE(grayscale(image_.view(), o.num_output_channels, out));
    image_ = packed(out.view());
  }
  void operator()(const op::ColorJitter& o) {
    JitterDrawing drawing;
    const std::vector<double> order = take("order");
    for (std::size_t i = 0; i < 4; ++i) drawing.order[i] = static_cast<int>(order[i]);
    if (o.brightness.low != o.brightness.high) drawing.brightness = take("brightness")[0];
    if (o.contrast.low != o.contrast.high) drawing.contrast = take("contrast")[0];
    if (o.saturation.low != o.saturation.high) drawing.saturation = take("saturation")[0];
    if (o.hue.low != o.hue.high) drawing.hue = take("hue")[0];
    memory::PixelBuffer image = buffer_of(image_);
    EXPECT_TRUE(jitter(image, drawing));
    image_ = packed(image.view());
  }
  void operator()(const op::RandomChange& o) { augment(name_of(o), Interpolation::kNearest, {}); }
  void operator()(const op::AutoAugment& o) { augment(name_of(o), o.interpolation, o.fill); }
  void operator()(const op::RandAugment& o) { augment(name_of(o), o.interpolation, o.fill); }
  void operator()(const op::TrivialAugmentWide& o) { augment(name_of(o), o.interpolation, o.fill); }
  void operator()(const op::RandomRotation& o) {
    warp({RotationWarp{take("angle")[0], o.expand, o.center}, o.interpolation, o.fill});
  }
  void operator()(const op::RandomAffine& o) {
    AffineWarp drawn{.angle = take("angle")[0], .center = o.center};
    drawn.translate = take_point("translate");
    drawn.scale = take("scale")[0];
    drawn.shear = take_point("shear");
    warp({drawn, o.interpolation, o.fill});
  }
  void operator()(const op::RandomPerspective& o) {
    if (next_ == values_.size() || values_[next_].name != "startpoints") return;
    const std::vector<double> start = take("startpoints"), end = take("endpoints");
    PerspectiveWarp drawn;
    for (std::size_t i = 0; i < 4; ++i) {
      drawn.start[i] = {start[2 * i], start[2 * i + 1]};
      drawn.end[i] = {end[2 * i], end[2 * i + 1]};
    }
    warp({drawn, o.interpolation, o.fill});
  }
  void operator()(const op::ElasticTransform& o) {
    ElasticScratch scratch;
    const ElasticWarp drawn{o.alpha, o.sigma, key_, static_cast<std::uint32_t>(take("stream")[0])};
    change(pixel_op::Elastic{elastic_displacement(drawn, size(), scratch), o.interpolation, o.fill});
  }
  void operator()(const op::RandomResize& o) { resize_to_drawn(o.interpolation); }
  void operator()(const op::RandomShortSide& o) { resize_to_drawn(o.interpolation); }
  void operator()(const op::ScaleJitter& o) {
    take("scale");
    resize_to_drawn(o.interpolation);
  }
  void operator()(const op::ResizeKeepRatio& o) {
    if (o.scale_p > 0) take("scale");
    if (o.aspect_p > 0) take("aspect");
    resize_to_drawn(o.interpolation);
  }
  void operator()(const op::PadTo& o) { pad_as_drawn(o.padding_mode, o.fill); }
  void operator()(const op::Letterbox& o) {
    resize_to_drawn(o.interpolation);
    pad_as_drawn(PaddingMode::kConstant, o.fill);
  }
  void operator()(const op::GaussianBlur& o) {
    const double sigma = take("sigma")[0];
    change(pixel_op::GaussianBlur{o.kernel_size, {sigma, sigma}});
  }
  void operator()(const op::RandomErasing& o) {
    if (next_ == values_.size() || values_[next_].operation != "random_erasing") return;
    const std::vector<double> v = take("box");
    const auto value = static_cast<std::uint8_t>(o.value[0]);
    change(pixel_op::Erase{
        {static_cast<int>(v[0]), static_cast<int>(v[1]), static_cast<int>(v[2]), static_cast<int>(v[3])},
        {value, value, value},
        {}});
  }
  void operator()(const op::RandomApply& o) {
    if (take("applied")[0] == 1) each(o.operations);
  }
  void operator()(const op::RandomChoice& o) { each(o.chains[static_cast<std::size_t>(take("choice")[0])]); }
  void operator()(const op::RandomOrder& o) {
    for (const double i : take("order")) each({o.operations[static_cast<std::size_t>(i)]});
  }
  void operator()(const op::AugMix& o) {
    const std::vector<double> weights = take("weights");
    const TestImage start = image_;
    std::vector<float> sum;
    for (const std::uint8_t pixel : start.pixels) sum.push_back(static_cast<float>(weights[0]) * pixel);
    for (std::size_t chain = 1; chain < weights.size(); ++chain) {
      take("chain");
      image_ = start;
      augment(name_of(o), o.interpolation, o.fill);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<float>(weights[chain]) * image_.pixels[i];
    }
    for (std::size_t i = 0; i < sum.size(); ++i) image_.pixels[i] = static_cast<std::uint8_t>(sum[i]);
  }

 private:
  void each(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations)
      if (!run_any<op::Decode, op::Resize, op::CenterCrop, op::RandomCrop, op::RandomResizedCrop,
                   op::RandomHorizontalFlip, op::RandomVerticalFlip, op::Pad, op::Grayscale, op::ColorJitter,
                   op::RandomChange, op::AutoAugment, op::RandAugment, op::TrivialAugmentWide, op::AugMix,
                   op::GaussianBlur, op::RandomErasing, op::RandomApply, op::RandomChoice, op::RandomOrder,
                   op::RandomRotation, op::RandomAffine, op::RandomPerspective, op::ElasticTransform, op::RandomResize,
                   op::RandomShortSide, op::ScaleJitter, op::PadTo, op::Letterbox, op::RandomCropOrPad,
                   op::ResizeKeepRatio, op::TrimBorder>(operation))
        ADD_FAILURE() << describe(operation) << " is not among them";
  }
  // Returns false if the operation's arguments have another type.
  template <typename... Op>
  bool run_any(const Operation& operation) {
    const auto run = [this](const auto* arguments) {
      if (arguments != nullptr) (*this)(*arguments);
      return arguments != nullptr;
    };
    return (run(arguments_of<Op>(operation)) || ...);
  }
  Size size() const { return {image_.height, image_.width}; }
  void resize_to_drawn(Interpolation interpolation) {
    const std::vector<double> size = take("size");
    image_ = resized(image_, {static_cast<int>(size[0]), static_cast<int>(size[1])}, interpolation);
  }
  void pad_as_drawn(PaddingMode mode, const Colour& fill) {
    const std::vector<double> p = take("padding");
    image_ = bordered(image_,
                      {static_cast<int>(p[0]), static_cast<int>(p[1]), static_cast<int>(p[2]), static_cast<int>(p[3])},
                      mode, fill);
  }
  Point take_point(const std::string& name) {
    const std::vector<double> values = take(name);
    return {values[0], values[1]};
  }
  void warp(const Warp& drawn) { change(pixel_operation(drawn, size())); }
  void change(const PixelOperation& operation) {
    memory::PixelBuffer out;
    PixelScratch scratch;
    EXPECT_TRUE(apply(operation, image_.view(), scratch, out));
    image_ = packed(out.view());
  }
  static Augmentation augmentation_of(const std::string& name) {
    for (int i = 0; i <= static_cast<int>(Augmentation::kGrayscale); ++i)
      if (name_of(static_cast<Augmentation>(i)) == name) return static_cast<Augmentation>(i);
    ADD_FAILURE() << name;
    return Augmentation::kIdentity;
  }
  void augment(std::string_view operation, Interpolation interpolation, const std::array<std::uint8_t, 3>& fill) {
    const auto is_drawn = [&](const DrawnValue& value) {
      return value.operation == operation && value.name != "weights" && value.name != "chain";
    };
    for (; next_ < values_.size() && is_drawn(values_[next_]); ++next_) {
      const DrawnAugmentation drawn{augmentation_of(values_[next_].name), values_[next_].values[0]};
      memory::PixelBuffer out;
      if (drawn.augmentation == Augmentation::kGrayscale) {
        EXPECT_TRUE(grayscale(image_.view(), image_.channels, out));
      } else {
        PixelScratch scratch;
        const auto change = pixel_operation(drawn, {image_.height, image_.width}, interpolation, fill);
        EXPECT_TRUE(apply(change, image_.view(), scratch, out));
      }
      image_ = packed(out.view());
    }
  }
  std::vector<double> take(const std::string& name) {
    EXPECT_LT(next_, values_.size());
    EXPECT_EQ(values_[next_].name, name);
    return values_[next_++].values;
  }
  Box take_box() {
    const std::vector<double> v = take("crop");
    return {static_cast<int>(v[0]), static_cast<int>(v[1]), static_cast<int>(v[2]), static_cast<int>(v[3])};
  }

  TestImage image_;
  std::vector<DrawnValue> values_;
  base::SampleKey key_;
  std::size_t next_ = 0;
};

class RandomChain {
 public:
  explicit RandomChain(std::uint32_t seed) : random_(seed) {}
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  Size size() { return {number(1, 60), number(1, 60)}; }
  Padding padding() { return {number(0, 9), number(0, 9), number(0, 9), number(0, 9)}; }

  Operation any() {
    const auto interpolation = static_cast<Interpolation>(number(0, 4));
    const auto mode = static_cast<PaddingMode>(number(0, 3));
    constexpr Interpolation kWarping[] = {Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic};
    const Interpolation warping = kWarping[number(0, 2)];
    switch (number(0, 24)) {
      case 19:
        return op::GaussianBlur{{5, 9}};
      case 20:
        return op::RandomErasing{.p = 0.8, .scale = {0.02, 0.8}, .value = {200}};
      case 21:
        return op::RandomApply{{nested(), nested()}};
      case 22:
        return op::RandomChoice{{{nested()}, {}, {nested(), nested()}}, {}};
      case 23:
        return op::RandomOrder{{nested(), nested(), nested()}};
      case 24:
        return op::AugMix{.severity = 9, .fill = {7, 8, 9}};
      case 14:
        return op::RandomRotation{{-180, 180}, warping, number(0, 1) == 1, {}, {3, 2, 1}};
      case 15:
        return op::RandomAffine{{-20, 40}, {{0.2, 0.3}}, {{0.5, 2}}, {{-9, 9}}, {}, warping, {4, 5, 6}, {{7, 8}}};
      case 16:
        return op::RandomPerspective{0.5, 0.7, warping, {4, 5, 6}};
      case 17:
        return op::ElasticTransform{{30, 20}, {2, 1}, Interpolation::kBilinear, {4, 5, 6}};
      case 18:
        return op::RandomResize{1, 50, interpolation};
      case 10:
        return op::RandomChange{static_cast<Augmentation>(
            number(static_cast<int>(Augmentation::kAutoContrast), static_cast<int>(Augmentation::kGrayscale)))};
      case 11:
        return op::RandAugment{.num_ops = number(0, 4), .interpolation = Interpolation::kBilinear, .fill = {5, 6, 7}};
      case 12:
        return op::TrivialAugmentWide{.interpolation = Interpolation::kBicubic};
      case 13:
        return op::AutoAugment{static_cast<AutoAugmentPolicy>(number(0, 2))};
      case 0:
        return op::Resize{size(), {}, interpolation};
      case 1:
        return op::Resize{{number(1, 50), 0}, {}, interpolation};
      case 2:
        return op::CenterCrop{size(), {6, 5, 4}, mode};
      case 3:
        return op::RandomCrop{size(), padding(), true, {9, 8, 7}, mode};
      case 4:
        return op::RandomResizedCrop{size(), {0.08, 1}, {0.75, 1.333}, interpolation};
      case 5:
        return op::RandomVerticalFlip{};
      case 6:
        return op::Pad{padding(), {1, 2, 3}, mode};
      case 7:
        return op::Grayscale{number(0, 1) * 2 + 1};
      case 8:
        return op::ColorJitter{{0, 2}, {0.5, 1.5}, {0, 3}, {-0.3, 0.3}};
      default:
        return op::RandomHorizontalFlip{};
    }
  }
  // All possible operations have the same number of channels, and operations are nested in two levels at most.
  Operation nested() {
    ++level_;
    Operation operation = any();
    const auto is_wrong = [&] {
      return name_of(operation) == "grayscale" || (level_ == 2 && !operation->chains().empty());
    };
    while (is_wrong()) operation = any();
    --level_;
    return operation;
  }
  std::vector<Operation> operations() {
    std::vector<Operation> list;
    if (number(0, 4) == 0) list.push_back(op::Decode{ColorMode::kL});
    for (int i = number(0, 4); i > 0; --i) list.push_back(any());
    list.push_back(number(0, 1) ? Operation(op::CenterCrop{size()}) : Operation(op::RandomResizedCrop{size()}));
    for (int i = number(0, 2); i > 0; --i) list.push_back(op::RandomHorizontalFlip{});
    return list;
  }

 private:
  std::mt19937 random_;
  int level_ = 0;
};

std::vector<std::uint8_t> run(const Chain& chain, const Drawing& drawing, const TestImage& image,
                              Workspace& workspace) {
  std::vector<std::uint8_t> out(chain.output().bytes());
  const TestImage region = cropped(image, drawing.region);
  EXPECT_TRUE(
      chain.apply(drawing, region.view(), workspace, {reinterpret_cast<std::byte*>(out.data()), chain.output()}));
  return out;
}

class ChainOnVariant : public ::testing::TestWithParam<std::string> {};

// Regions, windows, moved flips and fused borders must not change pixels.
TEST_P(ChainOnVariant, FusedIsWhatStepByStepGives) {
  const ForcedVariant forced(GetParam());
  Workspace workspace;
  Drawing drawing;
  int narrowed = 0;
  for (std::uint32_t round = 0; round < base::rounds(400, 4); ++round) {
    RandomChain random(round);
    const std::vector<Operation> operations = random.operations();
    const auto chain = compiled(operations, {}, Layout::kNhwc);
    ASSERT_TRUE(chain);
    const int channels = chain->color_mode() == ColorMode::kL ? 1 : 3;
    const TestImage image = test_image(random.number(1, 90), random.number(1, 90), channels, round);
    ASSERT_TRUE(chain->draw({image.height, image.width}, {1, 0, round}, drawing));
    narrowed += drawing.region.width < image.width || drawing.region.height < image.height;
    const TestImage expected = StepByStep(image, chain->values(drawing), {1, 0, round}).run(operations);
    std::string text;
    for (const Operation& operation : operations) text += describe(operation) + " ";
    ASSERT_EQ(run(*chain, drawing, image, workspace), expected.pixels) << round << ": " << text;
  }
  EXPECT_GT(narrowed, base::rounds(40, 4));  // otherwise nothing was tested
}

TEST_P(ChainOnVariant, WritesItsRowAndNothingElse) {
  const ForcedVariant forced(GetParam());
  const TestImage image = test_image(97, 61, 3, 4);
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc})
    for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kFloat32})
      for (const int width : {1, 3, 17, 33, 64, 71}) {
        const auto chain = compiled({op::RandomResizedCrop{{5, width}}, op::RandomHorizontalFlip{0.5}}, dtype, layout);
        Drawing drawing;
        Workspace workspace;
        ASSERT_TRUE(chain->draw({61, 97}, {1, 1, static_cast<std::uint64_t>(width)}, drawing));
        const std::size_t bytes = chain->output().bytes();
        const std::size_t start = 64 + size_of(dtype);  // rows of a batch may start at any address
        std::vector<std::uint8_t> memory(start + bytes + 256, 0xA5);
        const TestImage region = cropped(image, drawing.region);
        ASSERT_TRUE(chain->apply(drawing, region.view(), workspace,
                                 {reinterpret_cast<std::byte*>(memory.data() + start), chain->output()}));
        for (std::size_t i = 0; i < memory.size(); ++i) {
          const bool ours = i >= start && i < start + bytes;
          ASSERT_TRUE(ours || memory[i] == 0xA5) << i;
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Variants, ChainOnVariant, ::testing::ValuesIn(simd_variants()),
                         [](const auto& variant) { return variant.param; });

TEST(Chain, NormalizesAsTorchvisionDoes) {
  const TestImage image = test_image(256, 3, 3, 6);
  const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};
  const auto chain = compiled({op::CenterCrop{{3, 256}}, op::RandomHorizontalFlip{1},
                               op::Normalize{{mean[0], mean[1], mean[2]}, {std[0], std[1], std[2]}}});
  Drawing drawing;
  Workspace workspace;
  ASSERT_TRUE(chain->draw({3, 256}, kKey, drawing));
  const std::vector<std::uint8_t> out = run(*chain, drawing, image, workspace);
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 256; ++x) {
        float value;
        std::memcpy(&value, out.data() + sizeof value * static_cast<std::size_t>((c * 3 + y) * 256 + x), sizeof value);
        const float scaled = static_cast<float>(image.view().row(y)[(255 - x) * 3 + c]) / 255.0f;
        ASSERT_EQ(value, (scaled - mean[c]) / std[c]);
      }
}

TEST(Chain, DecodesOnlyWhatACropNeeds) {
  Drawing drawing;
  const auto crop = compiled({op::RandomHorizontalFlip{1}, op::RandomVerticalFlip{1}, op::RandomCrop{{10, 20}}});
  ASSERT_TRUE(crop->draw({100, 200}, kKey, drawing));
  const std::vector<double> box = crop->values(drawing).back().values;
  EXPECT_EQ(drawing.region, (Box{200 - static_cast<int>(box[0]) - 20, 100 - static_cast<int>(box[1]) - 10, 20, 10}));
  // A resize from 500 x 375 to 341 x 256, of which columns 58 to 281 and rows 16 to 239 are needed. Each output pixel
  // reads 1.47 pixels on both sides of its centre: (58.5 * 500 / 341) - 1.47 rounds to 84, and so on.
  const auto evaluation = compiled({op::Resize{{256, 0}}, op::CenterCrop{{224, 224}}});
  ASSERT_TRUE(evaluation->draw({375, 500}, kKey, drawing));
  EXPECT_EQ(drawing.region, (Box{84, 23, 330, 329}));
  const auto pads = compiled({op::CenterCrop{{300, 300}}});
  ASSERT_TRUE(pads->draw({100, 400}, kKey, drawing));
  EXPECT_EQ(drawing.region, (Box{0, 0, 400, 100}));
}

TEST(Chain, DrawsTheSameForTheSameKeyAndElseNot) {
  const auto chain = compiled({op::RandomResizedCrop{{32, 32}}, op::RandomHorizontalFlip{0.5},
                               op::ColorJitter{{0, 2}, {0, 2}, {0, 2}, {-0.5, 0.5}}});
  const auto values = [&chain](const base::SampleKey& key) {
    Drawing drawing;
    EXPECT_TRUE(chain->draw({375, 500}, key, drawing));
    std::vector<double> all;
    for (const DrawnValue& value : chain->values(drawing))
      all.insert(all.end(), value.values.begin(), value.values.end());
    return all;
  };
  const auto first = values(kKey);
  EXPECT_EQ(first.size(), 4u + 1u + 4u + 4u);
  EXPECT_EQ(values(kKey), first);
  EXPECT_NE(values({2, 2, 3}), first);
  EXPECT_NE(values({1, 3, 3}), first);
  EXPECT_NE(values({1, 2, 4}), first);
}

// Appending an operation to a chain does not change earlier draws, because each operation has its own stream.
TEST(Chain, OperationsDoNotShareRandomness) {
  Drawing one, two;
  ASSERT_TRUE(compiled({op::RandomResizedCrop{{32, 32}}, op::RandomHorizontalFlip{0.5}})->draw({375, 500}, kKey, one));
  const auto longer =
      compiled({op::RandomResizedCrop{{32, 32}}, op::RandomHorizontalFlip{0.5}, op::RandomVerticalFlip{}});
  ASSERT_TRUE(longer->draw({375, 500}, kKey, two));
  EXPECT_EQ(one.region, two.region);
}

TEST(Chain, TwoCoinsFallIndependently) {
  const auto chain = compiled({op::CenterCrop{{8, 8}}, op::RandomHorizontalFlip{}, op::RandomVerticalFlip{}});
  int equal = 0;
  Drawing drawing;
  for (std::uint64_t sample = 0; sample < 400; ++sample) {
    ASSERT_TRUE(chain->draw({8, 8}, {0, 0, sample}, drawing));
    const std::vector<DrawnValue> values = chain->values(drawing);
    equal += values[1].values == values[2].values;
  }
  EXPECT_NEAR(equal, 200, 40);  // four standard deviations
}

TEST(Chain, TellsWhichImageIsTooSmall) {
  Drawing drawing;
  const auto drawn = compiled({op::RandomCrop{{224, 224}}})->draw({100, 300}, kKey, drawing);
  ASSERT_FALSE(drawn);
  EXPECT_EQ(drawn.error().code, ErrorCode::kData);
  EXPECT_NE(drawn.error().what.find("random_crop"), std::string::npos);
  EXPECT_NE(drawn.error().what.find("100 x 300"), std::string::npos);
  const auto vanishing = compiled({op::Resize{{1, 0}, 2}, op::CenterCrop{{1, 1}}})->draw({1, 5000}, kKey, drawing);
  ASSERT_FALSE(vanishing);
  EXPECT_EQ(vanishing.error().code, ErrorCode::kData);
}

TEST(Chain, ExplainsItself) {
  const auto lines =
      compiled({op::RandomResizedCrop{{224, 224}}, op::RandomHorizontalFlip{0.5}, op::Normalize{{0.5f}, {0.5f}}})
          ->explain();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "decode to RGB");
  EXPECT_NE(lines[1].find("random_resized_crop(224, 224"), std::string::npos);
  EXPECT_NE(lines[3].find("float32 (3, 224, 224)"), std::string::npos);
}

TEST(Resize, WorksOnTheSmallestImages) {
  for (const Interpolation interpolation : kInterpolations)
    for (const int channels : {1, 3}) {
      const TestImage dot{1, 1, channels, std::vector<std::uint8_t>(static_cast<std::size_t>(channels), 77)};
      const TestImage out = resized(dot, {3, 5}, interpolation);
      EXPECT_EQ(out.pixels, std::vector<std::uint8_t>(static_cast<std::size_t>(15 * channels), 77));
    }
  Workspace workspace;
  memory::PixelBuffer out;
  const TestImage dot{1, 1, 1, {0}};
  EXPECT_EQ(resize(dot.view(), {0, 5}, Interpolation::kBox, workspace, out).error().code, ErrorCode::kConfig);
}

TEST(Resize, FollowsTheVersionOfPillowThatIsAsked) {
  const TestImage image = test_image(60, 300, 3, 2);
  const TestImage as_13 = resized(image, {90, 50}, Interpolation::kBilinear);
  ASSERT_TRUE(follow_pillow(11));
  const TestImage as_11 = resized(image, {90, 50}, Interpolation::kBilinear);
  EXPECT_FALSE(follow_pillow(9));
  ASSERT_TRUE(follow_pillow(13));
  EXPECT_NE(as_13, as_11);
  EXPECT_EQ(resized(image, {90, 50}, Interpolation::kBilinear), as_13);
  for (std::size_t i = 0; i < as_13.pixels.size(); ++i) ASSERT_LE(std::abs(as_13.pixels[i] - as_11.pixels[i]), 1);
}

}  // namespace
}  // namespace feedline::transform
