// SPDX-License-Identifier: Apache-2.0
#include "cache/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace feedline::cache {
namespace {

constexpr FrameKind kKind{0x1122334455667788, 3};

struct Made {
  memory::ByteBuffer buffer;
  std::span<std::byte> file;
};

Made made(const std::vector<std::uint64_t>& wide, const std::string& text) {
  Made made;
  FrameBuilder builder(kKind, {wide.size(), text.size()});
  builder.add(wide);
  builder.add(text);
  made.file = builder.write(made.buffer);
  return made;
}

TEST(Frame, GivesBackWhatWasPutIn) {
  for (const std::string text : {"", "1234567", "12345678", "123456789"}) {
    const std::vector<std::uint64_t> wide(text.size() / 2, 7);
    const Made table = made(wide, text);
    EXPECT_EQ(table.file.size() % 8, 0u);
    EXPECT_TRUE(is_undamaged(table.file));
    FrameReader reader(table.file, kKind, 2);
    EXPECT_TRUE(std::ranges::equal(reader.take<std::uint64_t>(reader.count(0)), wide));
    const auto letters = reader.take<char>(reader.count(1));
    EXPECT_EQ(std::string(letters.begin(), letters.end()), text);
    EXPECT_TRUE(reader.is_whole());
  }
}

TEST(Frame, KnowsAnotherVersionFromDamageAndFromSomethingElse) {
  Made table = made({1, 2}, "text");
  EXPECT_FALSE(is_foreign(table.file, kKind));
  EXPECT_TRUE(is_foreign(table.file, {kKind.magic, 4}));
  EXPECT_FALSE(is_foreign(table.file, {kKind.magic + 1, 4}));
  EXPECT_FALSE(is_foreign(table.file.first(15), {kKind.magic, 4}));
  FrameReader reader(table.file, {kKind.magic, 4}, 2);
  EXPECT_EQ(reader.count(0), 0u);
  EXPECT_FALSE(reader.is_whole());
  for (std::size_t i = 0; i < table.file.size(); ++i) {
    table.file[i] ^= std::byte{1};
    EXPECT_FALSE(is_undamaged(table.file)) << i;
    EXPECT_FALSE(is_undamaged(table.file.first(i)));
    table.file[i] ^= std::byte{1};
  }
}

TEST(Frame, NothingOutsideIsLookedAt) {
  const Made table = made({1, 2, 3}, "text");
  for (std::size_t size = 0; size <= table.file.size(); ++size) {  // checked by the sanitizers
    FrameReader reader(table.file.first(size), kKind, 2);
    const auto wide = reader.take<std::uint64_t>(reader.count(0));
    const auto text = reader.take<char>(reader.count(1));
    EXPECT_EQ(reader.is_whole(), size == table.file.size());
    EXPECT_LE(wide.size_bytes() + text.size_bytes(), size);
  }
  for (const std::uint64_t count :
       {~std::uint64_t{0}, std::uint64_t{1} << 61, std::uint64_t{1} << 40, std::uint64_t{6}}) {
    FrameReader reader(table.file, kKind, 2);
    EXPECT_TRUE(reader.take<std::uint64_t>(count).empty()) << count;
    EXPECT_TRUE(reader.take<char>(1).empty()) << "nothing follows what did not fit";
    EXPECT_FALSE(reader.is_whole());
  }
  memory::ByteBuffer buffer;  // a sum or a product with such a number would overflow in the parser
  FrameReader absurd(FrameBuilder(kKind, {(std::uint64_t{1} << 40) + 1}).write(buffer), kKind, 1);
  EXPECT_EQ(absurd.number(0), (std::uint64_t{1} << 40) + 1);
  EXPECT_EQ(absurd.count(0), 0u);
  EXPECT_FALSE(absurd.is_whole());
  FrameReader reader(table.file, kKind, 2);
  reader.take<std::uint64_t>(1);
  EXPECT_FALSE(reader.is_whole()) << "something is left over";
}

}  // namespace
}  // namespace feedline::cache
