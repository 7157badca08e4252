// SPDX-License-Identifier: Apache-2.0
// Every kind of field, from a tar to a sample, and the errors of each.

#include "pipeline/fields/field_path.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "decode/png/png_fixture.h"
#include "format/tar/tar_writer.h"
#include "pipeline/fake_format.h"
#include "pipeline/sample/sample_reader.h"
#include "storage/temporary_folder.h"

namespace feedline::pipeline {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string image(std::uint32_t width = 8, std::uint32_t height = 6) { return text_of(plain_png(9, width, height)); }

// Returns an 8-bit grey PNG whose pixels are numbered from 0.
std::string mask(std::uint32_t width = 8, std::uint32_t height = 6) {
  std::vector<std::uint8_t> labels(std::size_t{width} * height);
  std::iota(labels.begin(), labels.end(), std::uint8_t{0});
  return text_of(decode::made_png(width, height, SPNG_COLOR_TYPE_GRAYSCALE, labels));
}

// Returns a .npy file of int16 rows with two elements each.
std::string npy(const std::vector<std::int16_t>& numbers, const std::string& dtype = "<i2") {
  std::string header = "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (" +
                       std::to_string(numbers.size() / 2) + ", 2), }\n";
  return "\x93NUMPY\x01" + std::string(1, '\0') + static_cast<char>(header.size()) + std::string(1, '\0') + header +
         std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 2);
}

class FieldPathTest : public testing::Test {
 protected:
  // Opens a source whose sample i has the members `samples[i]`, by extension.
  Source opened(const std::vector<std::map<std::string, std::string>>& samples, std::vector<std::string> fields,
                Missing missing = Missing::kError) {
    format::TarWriter tar;
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (const auto& [extension, bytes] : samples[i]) tar.add(std::to_string(i) + "." + extension, bytes);
    auto source = Source::open(
        folder_.write("x.tar", tar.finish()),
        {.format = "tar", .fields = std::move(fields), .index_directory = folder_.path(), .missing = missing});
    EXPECT_TRUE(source) << source.error().message();
    return *source;
  }
  Result<Sample> read(const Source& source, std::uint64_t index, const std::vector<Operation>& operations = {},
                      const std::vector<Collation>& collations = {}) {
    FEEDLINE_TRY(auto recipe, make_recipe(source, operations, std::nullopt, Layout::kNhwc, {}, collations));
    return SampleReader(std::move(recipe)).read(GivenSample{index, index}, 1, 0);
  }
  // Returns the error that reading the sample or making the recipe causes.
  std::string refusal(const Source& source, std::uint64_t index, const std::vector<Operation>& operations = {},
                      const std::vector<Collation>& collations = {}) {
    const auto sample = read(source, index, operations, collations);
    EXPECT_FALSE(sample);
    return sample ? "fine" : sample.error().message();
  }
  storage::TemporaryFolder folder_;
};

const std::vector<Operation> kCrop{op::CenterCrop{{2, 4}}};

TEST_F(FieldPathTest, EveryKindComesAsItIsStored) {
  const Source source = opened({{{"jpg", image()},
                                 {"mask.png", mask()},
                                 {"npy", npy({1, 2, 3, 4})},
                                 {"json", "{\"a\": 1}"},
                                 {"txt", "gr\xc3\xbc\xc3\x9f"},
                                 {"bin", std::string("a\0b", 3)},
                                 {"cls", "5"}}},
                               {"jpg", "mask.png", "npy", "json", "txt", "bin", "cls"});
  const auto sample = read(source, 0, kCrop);
  ASSERT_TRUE(sample) << sample.error().message();
  const auto& fields = sample->fields;
  EXPECT_EQ(fields[0].array, (ArraySpec{DType::kUint8, {2, 4, 3}}));
  EXPECT_EQ(fields[0].data, std::vector<std::byte>(24, std::byte{9}));
  EXPECT_EQ(fields[1].array, (ArraySpec{DType::kUint8, {2, 4}}));
  EXPECT_EQ(fields[1].data[0], std::byte{2 * 8 + 2});
  EXPECT_EQ(fields[1].data[7], std::byte{3 * 8 + 5});
  EXPECT_EQ(fields[2].array, (ArraySpec{DType::kInt16, {2, 2}}));
  EXPECT_EQ(fields[2].form, BatchForm::kDense);
  EXPECT_EQ(text_of(fields[3].data), "{\"a\": 1}");
  EXPECT_EQ(fields[3].content, Content::kJson);
  EXPECT_EQ(fields[3].form, BatchForm::kList);
  EXPECT_EQ(text_of(fields[4].data), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(fields[5].array, (ArraySpec{DType::kUint8, {3}}));
  std::int64_t label = 0;
  std::memcpy(&label, fields[6].data.data(), 8);
  EXPECT_EQ(label, 5);
}

TEST_F(FieldPathTest, ErrorsNameKeyFieldAndStage) {
  const std::map<std::string, std::string> good{
      {"jpg", image()}, {"mask.png", mask()}, {"npy", npy({1, 2})}, {"json", "1"}, {"txt", "a"}};
  const auto with = [&](const std::string& extension, const std::string& bytes) {
    auto bad = good;
    bad[extension] = bytes;
    return refusal(opened({good, bad}, {"jpg", "mask.png", "npy", "json", "txt"}), 1, kCrop);
  };
  for (const auto& [extension, bytes, words] : std::vector<std::array<std::string, 3>>{
           {"json", "{", "field 'json': invalid JSON"},
           {"txt", "\xff", "field 'txt': not UTF-8"},
           {"npy", "x", "field 'npy': npy: not a .npy file"},
           {"npy", npy({1, 2, 3, 4}), "int16(2, 2), but all must be int16(1, 2)"},
           {"npy", npy({1, 2}, "<u2"), "that of the first sample is int16"},
           {"mask.png", mask(7, 6), "field 'mask.png': 'mask.png' has 6 x 7 pixels and 'jpg' 6 x 8"},
           {"mask.png", image(), "field 'mask.png': a mask must be"},
           {"jpg", "x", "field 'jpg': not an image"}}) {
    const std::string message = with(extension, bytes);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("x.tar"), std::string::npos) << message;
    EXPECT_NE(message.find("key 1"), std::string::npos) << message;
  }
  EXPECT_NE(with("npy", npy({1, 2, 3, 4})).find("collate(\"pad\")"), std::string::npos);
}

TEST_F(FieldPathTest, CollationsSayWhichShapesMayDiffer) {
  const Source source = opened(
      {{{"npy", npy({1, 2})}, {"png", image()}}, {{"npy", npy({1, 2, 3, 4})}, {"png", image(5, 4)}}}, {"npy", "png"});
  const auto padded = *make_collation(BatchForm::kPadded, {}, source);
  EXPECT_EQ(padded.fields, std::vector<std::string>{"npy"});
  const auto listed = *make_collation(BatchForm::kList, {}, source);
  EXPECT_EQ(listed.fields, (std::vector<std::string>{"npy", "png"}));
  const auto sample = read(source, 1, {}, {listed, padded});
  ASSERT_TRUE(sample) << sample.error().message();
  EXPECT_EQ(sample->fields[0].form, BatchForm::kPadded) << "the last setting counts";
  EXPECT_EQ(sample->fields[0].array.shape, (Shape{2, 2}));
  EXPECT_EQ(sample->fields[1].array.shape, (Shape{4, 5, 3}));
  const auto recipe = *make_recipe(source, {}, std::nullopt, Layout::kNchw, {}, {listed, padded});
  EXPECT_EQ(recipe->schema[0].array.shape, (Shape{kAnyLength, 2}));
  EXPECT_EQ(recipe->schema[1].array.shape, (Shape{3, kAnyLength, kAnyLength}));
  EXPECT_NE(refusal(source, 0).find("no fixed output size"), std::string::npos);
  EXPECT_FALSE(make_collation(BatchForm::kPadded, {"png"}, source));
  EXPECT_FALSE(make_collation(BatchForm::kList, {"cls"}, source));
  const Source numbers = opened({{{"cls", "5"}}, {{"cls", "6"}}}, {"cls"});
  const auto none = make_collation(BatchForm::kList, {}, numbers);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find("'cls' is value"), std::string::npos) << none.error().what;
}

TEST_F(FieldPathTest, AbsentFieldsAreForLists) {
  const Source source =
      opened({{{"png", image()}, {"txt", "a"}}, {{"png", image()}}, {{"txt", "b"}}}, {"png", "txt"}, Missing::kNone);
  EXPECT_NE(refusal(source, 0, kCrop).find("collate(\"list\", fields=[\"png\"])"), std::string::npos);
  const auto listed = *make_collation(BatchForm::kList, {"png"}, source);
  const auto first = read(source, 0, kCrop, {listed}), second = read(source, 1, kCrop, {listed}),
             third = read(source, 2, kCrop, {listed});
  ASSERT_TRUE(first && second && third);
  EXPECT_FALSE(first->fields[1].absent);
  EXPECT_TRUE(second->fields[1].absent);
  EXPECT_TRUE(second->fields[1].data.empty());
  EXPECT_TRUE(third->fields[0].absent);
  EXPECT_EQ(text_of(third->fields[1].data), "b");
}

TEST_F(FieldPathTest, OperationsAreForTheFieldsThatTheyName) {
  const Source source =
      opened({{{"left.png", image()}, {"right.png", image(10, 8)}, {"mask.png", mask()}, {"cls", "1"}}},
             {"left.png", "right.png", "mask.png", "cls"});
  Operation small = op::Resize{{2, 2}, {}, Interpolation::kBilinear},
            large = op::Resize{{4, 4}, {}, Interpolation::kBilinear};
  small.fields = {"left.png"};
  large.fields = {"right.png", "mask.png"};
  const auto sample = read(source, 0, {small, large});
  ASSERT_TRUE(sample) << sample.error().message();
  EXPECT_EQ(sample->fields[0].array.shape, (Shape{2, 2, 3}));
  EXPECT_EQ(sample->fields[1].array.shape, (Shape{4, 4, 3}));
  EXPECT_EQ(sample->fields[2].array.shape, (Shape{4, 4}));
  const auto wrong = [&](Operation operation, const std::string& field) {
    operation.fields = {field};
    const auto checked = check_operations(source, {operation}, {});
    return checked ? "fine" : checked.error().what;
  };
  EXPECT_NE(wrong(op::CenterCrop{{2, 2}}, "top.png").find("there is no field 'top.png'"), std::string::npos);
  EXPECT_NE(wrong(op::CenterCrop{{2, 2}}, "cls").find("is not an image, mask, boxes or keypoints"), std::string::npos);
  EXPECT_NE(wrong(op::Grayscale{1}, "mask.png").find("labels are not colours"), std::string::npos);
  EXPECT_EQ(wrong(op::Grayscale{1}, "left.png"), "fine");
}

// The image and the mask have the same pixels, and must be equal after cropping and flipping.
TEST_F(FieldPathTest, ImageAndMaskAreDrawnTogether) {
  const Source source = opened({{{"png", mask(40, 6)}, {"mask.png", mask(40, 6)}}}, {"mask.png", "png"});
  const std::vector<Operation> operations{op::Decode{ColorMode::kL}, op::RandomHorizontalFlip{},
                                          op::RandomCrop{{5, 17}, {}, false, {}, PaddingMode::kConstant}};
  const auto recipe = *make_recipe(source, operations, std::nullopt, Layout::kNhwc);
  SampleReader reader(recipe);
  std::set<std::vector<std::byte>> seen;
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    const auto sample = reader.read(GivenSample{0, draw}, 3, 1);
    ASSERT_TRUE(sample) << sample.error().message();
    EXPECT_EQ(sample->fields[0].data, sample->fields[1].data) << draw;
    seen.insert(sample->fields[0].data);
  }
  EXPECT_GT(seen.size(), 10u);
}

TEST_F(FieldPathTest, ImagesOfUnlikeSizeAreRefusedWhereACropIsDrawn) {
  const Source source = opened({{{"left.png", image()}, {"right.png", image(10, 8)}}}, {"left.png", "right.png"});
  EXPECT_TRUE(read(source, 0, {op::Resize{{2, 2}, {}, Interpolation::kBilinear}}));
  EXPECT_NE(
      refusal(source, 0, {op::RandomResizedCrop{{2, 2}}}).find("'right.png' has 8 x 10 pixels and 'left.png' 6 x 8"),
      std::string::npos);
}

TEST_F(FieldPathTest, TheFirstSamplesMayBeDamaged) {
  const Source source = opened({{{"npy", "x"}}, {{"npy", npy({1, 2})}}}, {"npy"});
  EXPECT_TRUE(read(source, 1));
  EXPECT_NE(refusal(source, 0).find("not a .npy file"), std::string::npos);
  EXPECT_NE(refusal(opened({{{"npy", "x"}}}, {"npy"}), 0).find("key 0"), std::string::npos);
}

TEST_F(FieldPathTest, TheCacheTakesEveryFieldAndOperationsForAll) {
  const Source source = opened({{{"png", image()}, {"txt", "a"}, {"npy", npy({1})}}}, {"png", "txt", "npy"});
  EXPECT_TRUE(make_cache_point("memory", 1 << 20, source, {}));
  Operation chosen = op::CenterCrop{{2, 2}};
  chosen.fields = {"png"};
  const auto refused = make_cache_point("memory", 1 << 20, source, {chosen});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("place it after cache"), std::string::npos);
}

}  // namespace
}  // namespace feedline::pipeline
