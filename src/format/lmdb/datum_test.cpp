// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/datum.h"

#include <gtest/gtest.h>

#include "format/lmdb/datum_writer.h"

namespace feedline::format {
namespace {

std::optional<Datum> parsed(const std::string& message) { return parse_datum(std::as_bytes(std::span(message))); }

std::string pixels(const std::string& message) {
  const auto datum = parsed(message);
  if (!datum) return "no Datum";
  memory::ByteBuffer room;
  const auto view = pixels_of(*datum, room, 1 << 20);
  if (!view) return view.error().what;
  std::string text = std::to_string(view->height) + "x" + std::to_string(view->width) + ":";
  for (int y = 0; y < view->height; ++y)
    text.append(reinterpret_cast<const char*>(view->row(y)), static_cast<std::size_t>(view->width * view->channels));
  return text;
}

TEST(Datum, ChannelsOfCaffeBecomePixelsOfRgb) {
  EXPECT_EQ(pixels(raw_datum(3, 1, 2, "bBgGrR", 1)), "1x2:rgbRGB");
  EXPECT_EQ(pixels(raw_datum(1, 2, 2, "abcd", 1)), "2x2:abcd");
}

TEST(Datum, LabelsMayBeNegativeOrLeftOut) {
  const std::string negative = encoded_datum("x", -3), none = field(4, "x") + number_field(7, 1);
  EXPECT_EQ(parsed(negative)->label, -3);
  EXPECT_EQ(parsed(none)->label, 0);
  EXPECT_TRUE(parsed(none)->encoded);
}

TEST(Datum, FloatsAreCountedPackedOrNot) {
  const std::string packed =
      extents(2, 1, 2) + field(6, raw(1.0F) + raw(2.0F)) + tag(6, 5) + raw(3.0F) + tag(6, 5) + raw(4.0F);
  const auto datum = parsed(packed);
  ASSERT_TRUE(datum);
  EXPECT_EQ(datum->float_count, 4u);
  EXPECT_TRUE(datum->is_whole());
  EXPECT_FALSE(datum->is_pixels());
}

TEST(Datum, ExtentsThatDoNotFitAreErrors) {
  for (const std::string& wrong : {raw_datum(3, 1, 2, "12345", 0), raw_datum(1, 0, 2, "", 0),
                                   raw_datum(1, -1, -4, "abcd", 0), raw_datum(3, 1 << 30, 1 << 30, "abc", 0)}) {
    ASSERT_TRUE(parsed(wrong));
    EXPECT_FALSE(parsed(wrong)->is_whole());
    EXPECT_NE(pixels(wrong).find("the Datum has"), std::string::npos) << pixels(wrong);
  }
}

TEST(Datum, OtherMessagesAreNone) {
  const std::string label = number_field(5, 1), cut = encoded_datum("image", 3).substr(0, 4);
  for (const std::string& wrong :
       {std::string(), label, cut, std::string("text"), std::string("\xff\xd8\xff\xe0 a photo"),
        field(5, "label") + field(4, "x"), number_field(4, 1), field(6, "123")})
    EXPECT_FALSE(parsed(wrong)) << wrong;
}

}  // namespace
}  // namespace feedline::format
