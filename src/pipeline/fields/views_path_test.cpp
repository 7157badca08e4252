// SPDX-License-Identifier: Apache-2.0
// The result does not depend on whether the regions of views are decoded together, separately, or from the whole image.

#include "pipeline/fields/views_path.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "decode/jpeg/jpeg_fixture.h"
#include "format/format.h"
#include "pipeline/fake_format.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/image_input.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/sample_reader.h"
#include "pipeline/sample/source.h"
#include "pipeline/sample/view_point.h"
#include "storage/temporary_folder.h"

namespace feedline::pipeline {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Source source_of(const storage::TemporaryFolder& folder) {
  auto source = Source::open(folder.path(), {});
  EXPECT_TRUE(source) << source.error().message();
  return *source;
}

ViewPoint views_of(std::vector<View> views, const Source& source, std::size_t position) {
  auto point = make_view_point(std::move(views), "", source, position, nullptr);
  EXPECT_TRUE(point) << point.error().message();
  return *point;
}

View crops(const std::string& name, int size, double low, double high, int count) {
  return {name, {op::RandomResizedCrop{{size, size}, {low, high}}, op::RandomHorizontalFlip{}}, count};
}

// Returns the views, each made from the whole image by a separate chain.
std::vector<std::byte> made_of_whole(const ViewPoint& point, const std::vector<Operation>& operations,
                                     const std::vector<std::byte>& encoded, const base::SampleKey& key) {
  ImageScratch scratch;
  const memory::Record::Field stored{.bytes = encoded};
  const Size image = *open_image(stored, false, scratch);
  EXPECT_TRUE(scratch.decoder.decode({0, 0, image.width, image.height}, ColorMode::kRgb, scratch.pixels));
  std::vector<std::byte> all;
  std::uint32_t number = 0;
  for (std::size_t field = 0; field < point.fields.size(); ++field)
    for (std::size_t view = 0; view < point.fields[field].views.size(); ++view) {
      const auto chain = transform::Chain::compile_view(point.operations_of(operations, field, view), point.position,
                                                        number++, std::nullopt, Layout::kNchw);
      EXPECT_TRUE((*chain)->draw(image, key, scratch.drawing));
      memory::PixelView part = scratch.pixels.view();
      const Box& box = scratch.drawing.region;
      part.data = part.row(box.top) + box.left * part.channels;
      part.width = box.width;
      part.height = box.height;
      const std::size_t before = all.size();
      all.resize(before + (*chain)->output().bytes());
      EXPECT_TRUE((*chain)->apply(scratch.drawing, part, scratch.workspace, {all.data() + before, (*chain)->output()}));
    }
  return all;
}

std::vector<std::byte> bytes_of(const Sample& sample, std::size_t fields) {
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < fields; ++i)
    all.insert(all.end(), sample.fields[i].data.begin(), sample.fields[i].data.end());
  return all;
}

TEST(ViewsPath, TheBytesAreThoseOfEachViewByItselfHoweverManyAreDecoded) {
  const auto jpeg = decode::encode({.width = 640, .height = 480});
  const auto png = plain_png(77, 200, 150);
  for (const auto& encoded : {jpeg, png}) {
    const storage::TemporaryFolder folder;
    folder.write("a/0.jpg", text_of(encoded));
    const Source source = source_of(folder);
    for (const double largest : {1.0, 0.002}) {
      const std::vector<Operation> operations{op::Normalize{{0.5f}, {0.25f}}};
      const ViewPoint point =
          views_of({crops("a", 16, largest / 2, largest, 2), crops("b", 9, largest / 4, largest / 2, 1)}, source, 0);
      const auto recipe = make_recipe(source, operations, std::nullopt, Layout::kNchw, {}, {}, nullptr, &point);
      ASSERT_TRUE(recipe) << recipe.error().message();
      SampleReader reader(*recipe);
      FieldScratch scratch;
      (*recipe)->views->add_scratch(scratch);
      std::set<std::size_t> decodes;
      std::vector<ViewsPath::Region> regions;
      for (std::uint64_t epoch = 0; epoch < 80; ++epoch) {
        const base::SampleKey key{7, epoch, 0};
        const auto sample = reader.read(GivenSample{0, 0}, 7, epoch);
        ASSERT_TRUE(sample) << sample.error().message();
        EXPECT_EQ(bytes_of(*sample, 2), made_of_whole(point, operations, encoded, key)) << epoch;
        scratch.drawn_for = {};
        ASSERT_TRUE((*recipe)->views->find_regions({.bytes = encoded}, key, scratch, regions));
        decodes.insert(regions.size());
      }
      EXPECT_TRUE(decodes.contains(1));
      if (largest < 1 && encoded == jpeg)
        EXPECT_TRUE(decodes.contains(3)) << "small views are sometimes decoded separately";
    }
  }
}

TEST(ViewsPath, WhatIsBeforeTheViewsIsDrawnOnceAndTheBytesAreTheSame) {
  const auto encoded = decode::encode({.width = 120, .height = 90});
  const storage::TemporaryFolder folder;
  folder.write("a/0.jpg", text_of(encoded));
  const Source source = source_of(folder);
  const std::vector<Operation> operations{op::RandomResizedCrop{{60, 70}}, op::RandomHorizontalFlip{},
                                          op::RandomVerticalFlip{}};
  const ViewPoint point = views_of({crops("a", 16, 0.3, 1, 3)}, source, 2);  // the last flip comes after the views
  const auto recipe = make_recipe(source, operations, std::nullopt, Layout::kNhwc, {}, {}, nullptr, &point);
  ASSERT_TRUE(recipe) << recipe.error().message();
  SampleReader reader(*recipe);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const base::SampleKey key{1, epoch, 0};
    const auto sample = reader.read(GivenSample{0, 0}, 1, epoch);
    ASSERT_TRUE(sample) << sample.error().message();
    // by the whole list: the shared steps once, by hand
    ImageScratch scratch;
    const memory::Record::Field stored{.bytes = encoded};
    const Size image = *open_image(stored, false, scratch);
    const auto shared = *transform::SharedSteps::compile(point.shared(operations));
    ASSERT_TRUE(shared->draw(image, key, nullptr, scratch.drawing));
    ASSERT_TRUE(scratch.decoder.decode(scratch.drawing.region, ColorMode::kRgb, scratch.pixels));
    transform::AlignedVector<std::uint8_t> out;
    const auto pixels = *shared->apply(scratch.drawing, scratch.pixels.view(), scratch.workspace, out);
    EXPECT_EQ(pixels.width, 70);
    EXPECT_EQ(pixels.height, 60);
    std::vector<std::byte> expected;
    for (std::uint32_t view = 0; view < 3; ++view) {
      const auto chain = *transform::Chain::compile_view(point.operations_of(operations, 0, view), 2, view,
                                                         std::nullopt, Layout::kNhwc);
      ASSERT_TRUE(chain->draw({60, 70}, key, scratch.drawing));
      memory::PixelView part = pixels;
      const Box& box = scratch.drawing.region;
      part.data = part.row(box.top) + box.left * 3;
      part.width = box.width;
      part.height = box.height;
      const std::size_t before = expected.size();
      expected.resize(before + chain->output().bytes());
      ASSERT_TRUE(chain->apply(scratch.drawing, part, scratch.workspace, {expected.data() + before, chain->output()}));
    }
    EXPECT_EQ(bytes_of(*sample, 1), expected) << epoch;
  }
}

TEST(ViewsPath, PlanesOfTheBoxAreTheBytesOfPlanesOfEachView) {
  const auto encoded = decode::encode({.width = 640, .height = 480});
  const storage::TemporaryFolder folder;
  folder.write("a/0.jpg", text_of(encoded));
  const Source source = source_of(folder);
  const std::vector<Operation> operations{op::Decode{ColorMode::kRgb, Fidelity::kFast}};
  // so small that all of them use the coarsest planes
  const ViewPoint point = views_of({crops("a", 8, 0.5, 1, 3)}, source, 1);
  const auto recipe = make_recipe(source, operations, std::nullopt, Layout::kNchw, {}, {}, nullptr, &point);
  ASSERT_TRUE(recipe) << recipe.error().message();
  SampleReader reader(*recipe);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const base::SampleKey key{1, epoch, 0};
    const auto sample = reader.read(GivenSample{0, 0}, 1, epoch);
    ASSERT_TRUE(sample) << sample.error().message();
    ImageScratch scratch;
    std::vector<std::byte> expected;
    std::set<int> coarseness;
    for (std::uint32_t view = 0; view < 3; ++view) {
      const Size image = *open_image({.bytes = encoded}, false, scratch);
      const auto chain = *transform::Chain::compile_view(point.operations_of(operations, 0, view), 1, view,
                                                         std::nullopt, Layout::kNchw);
      ASSERT_TRUE(chain->draw(image, key, scratch.drawing));
      ASSERT_TRUE(scratch.drawing.planes);
      coarseness.insert(scratch.drawing.planes->brightness * 100 + scratch.drawing.planes->colour);
      ASSERT_TRUE(scratch.decoder.decode_planes(scratch.drawing.region, ColorMode::kRgb, *scratch.drawing.planes,
                                                scratch.planes));
      const std::size_t before = expected.size();
      expected.resize(before + chain->output().bytes());
      ASSERT_TRUE(chain->apply(scratch.drawing, scratch.planes, scratch.workspace,
                               {expected.data() + before, chain->output()}));
    }
    ASSERT_EQ(coarseness.size(), 1u);
    EXPECT_EQ(bytes_of(*sample, 1), expected) << epoch;
  }
}

}  // namespace
}  // namespace feedline::pipeline
