// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_walk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "format/index/memory_reader.h"
#include "format/lmdb/lmdb_index.h"
#include "format/lmdb/lmdb_writer.h"

namespace feedline::format {
namespace {

using Entries = std::vector<LmdbWriter::Entry>;

// Returns small and large values, so that both kinds of frames occur.
Entries some_entries(std::size_t count) {
  Entries entries;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(10000 + i);
    entries.push_back(
        {"key-" + number, std::string(i % 3 == 0 ? 5000 + i : 20 + i % 7, static_cast<char>('a' + i % 26))});
  }
  return entries;
}

struct Walked {
  std::string wrong;  // Returns the first finding, or the error.
  std::string code;
  LmdbWalk walk;
};

Walked walked(const std::string& file) {
  const MemoryReader reader(file);
  Findings findings;
  auto walk = walk_lmdb(reader, file.size(), "x.mdb", false, findings);
  if (!walk) return {walk.error().what, "error", {}};
  const Finding* first = findings.first_error();
  return {first != nullptr ? first->text : "", first != nullptr ? std::string(first->code) : "", std::move(*walk)};
}

template <typename Number>
void put(std::string& file, std::size_t at, Number number) {
  std::memcpy(file.data() + at, &number, sizeof number);
}

void expect_same(const std::string& file, const Entries& entries) {
  const Walked found = walked(file);
  ASSERT_EQ(found.wrong, "");
  ASSERT_EQ(found.walk.table.size(), entries.size());
  const auto index = LmdbIndex::build(found.walk, {file.size(), 1});
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(index.key(i), entries[i].key);
    const LmdbIndex::Location location = index.location(i);
    const auto value = index.value_in(std::as_bytes(std::span(file)).subspan(location.offset, location.bytes), i);
    ASSERT_TRUE(value) << value.error();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(value->data()), value->size()), entries[i].value);
  }
}

TEST(LmdbWalk, FindsEveryValueOfTreesOfAnyHeightAndPage) {
  for (const std::size_t page_bytes : {512, 4096, 16384, 32768})
    for (const std::size_t nodes : {2, 5, 1000})
      for (const std::size_t count : {0, 1, 2, 7, 300}) {
        SCOPED_TRACE(std::to_string(page_bytes) + " " + std::to_string(nodes) + " " + std::to_string(count));
        const Entries entries = some_entries(count);
        expect_same(LmdbWriter(page_bytes, nodes).file_of(entries), entries);
      }
}

TEST(LmdbWalk, TakesTheNewerOfBothMetaPages) {
  LmdbWriter writer;
  const LmdbRoot old = writer.add_tree(some_entries(3));
  const LmdbRoot now = writer.add_tree({{"only", "one"}});
  for (const std::uint64_t transaction : {6, 7}) {
    const std::string of_now = writer.file(now, transaction), of_old = writer.file(old, transaction - 1);
    const std::size_t page = transaction % 2;
    std::string file = of_old;
    file.replace(page * 4096, 4096, of_now.substr(page * 4096, 4096));
    const Walked found = walked(file);
    EXPECT_EQ(found.wrong, "");
    EXPECT_EQ(found.walk.table.size(), 1u) << transaction;
    EXPECT_EQ(found.walk.meta.transaction, transaction);
  }
}

TEST(LmdbWalk, KeysMayBeNumbersOrComparedFromTheirEnds) {
  const auto number = [](std::uint32_t value) { return std::string(reinterpret_cast<const char*>(&value), 4); };
  LmdbWriter numbers;
  const std::string file =
      numbers.file(numbers.add_tree({{number(2), "a"}, {number(256), "b"}, {number(257), "c"}}, 8));
  ASSERT_EQ(walked(file).wrong, "");
  const auto index = LmdbIndex::build(walked(file).walk, {file.size(), 1});
  EXPECT_EQ(index.key_text(1), "256");
  LmdbWriter reversed;
  EXPECT_EQ(walked(reversed.file(reversed.add_tree({{"za", ""}, {"ab", ""}, {"bb", ""}}, 2))).wrong, "");
  LmdbWriter wrong;
  EXPECT_NE(walked(wrong.file(wrong.add_tree({{"za", ""}, {"ab", ""}}))).wrong.find("not in order"), std::string::npos);
  LmdbWriter twice;
  EXPECT_NE(walked(twice.file(twice.add_tree({{"a", ""}, {"a", ""}}))).wrong.find("not in order"), std::string::npos);
}

TEST(LmdbWalk, ANamedDatabaseAloneIsRead) {
  LmdbWriter writer;
  const Entries entries = some_entries(40);
  const LmdbRoot inner = writer.add_tree(entries);
  const LmdbRoot main = writer.add_tree({LmdbWriter::database_entry("images", inner)});
  expect_same(writer.file(main), entries);
}

TEST(LmdbWalk, SeveralDatabasesAreNamedAndDuplicatesRefused) {
  LmdbWriter writer;
  const LmdbRoot a = writer.add_tree({{"a", "1"}}), b = writer.add_tree({{"b", "2"}});
  const auto named = [](const char* name, const LmdbRoot& root) { return LmdbWriter::database_entry(name, root); };
  const Walked two = walked(writer.file(writer.add_tree({named("left", a), named("right", b)})));
  EXPECT_EQ(two.code, "named_databases");
  EXPECT_NE(two.wrong.find("'left', 'right'"), std::string::npos) << two.wrong;
  LmdbWriter mixed;
  const LmdbRoot inner = mixed.add_tree({{"a", "1"}});
  EXPECT_EQ(walked(mixed.file(mixed.add_tree({named("left", inner), {"x", "y"}}))).code, "named_databases");
  LmdbWriter duplicates;
  EXPECT_EQ(walked(duplicates.file(duplicates.add_tree({{"a", "1"}}, kDuplicates))).code, "duplicate_keys");
  LmdbWriter below;
  const LmdbRoot of_duplicates = below.add_tree({{"a", "1"}}, kDuplicates);
  EXPECT_EQ(walked(below.file(below.add_tree({named("left", of_duplicates)}))).code, "duplicate_keys");
}

TEST(LmdbWalk, OtherMachinesVersionsAndFilesAreNamed) {
  const std::string good = LmdbWriter().file_of(some_entries(3));
  const auto with = [&](auto change) {
    std::string file = good;
    change(file);
    return walked(file).wrong;
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(with([](std::string& f) { put(f, 16, std::uint32_t{0xDEC0EFBE}); }), "a big-endian machine,");
  contains(with([](std::string& f) { put(f, 16, 0), put(f, 12, std::uint32_t{0xBEEFC0DE}); }), "a machine of 32 bits");
  contains(with([](std::string& f) { put(f, 16, 0), put(f, 12, std::uint32_t{0xDEC0EFBE}); }),
           "big-endian machine of 32");
  contains(with([](std::string& f) { put(f, 20, std::uint32_t{999}); }), "version 999");
  contains(with([](std::string& f) { put(f, 4096 + 16, std::uint32_t{0}); }), "second meta page");
  contains(with([](std::string& f) { put(f, 10, std::uint16_t{2}); }), "first meta page is damaged");
  for (const std::uint32_t bytes : {0U, 1000U, 128U, 65536U})
    contains(with([&](std::string& f) { put(f, 40, bytes); }), "is damaged: pages of");
  contains(with([](std::string& f) { put(f, 4096 + 40, std::uint32_t{8192}); }), "different page sizes");
  contains(walked(good.substr(0, 100)).wrong, "ends within its first meta page");
  contains(walked(good.substr(0, 4200)).wrong, "ends within its second meta page");
  contains(walked(std::string(9000, 'x')).wrong, "not an LMDB file");
  EXPECT_EQ(walked("").code, "error");
}

// Each case damages a pointer in the root page or in one of its child pages.
TEST(LmdbWalk, EveryWrongPointerIsAnErrorAndNoLoopIsWalked) {
  LmdbWriter writer(4096, 3);
  const LmdbRoot root = writer.add_tree(some_entries(20));
  const std::string good = writer.file(root);
  ASSERT_EQ(walked(good).wrong, "");
  const std::size_t top = root.page * 4096;
  const std::size_t first_node = top + number_at<std::uint16_t>(std::as_bytes(std::span(good)), top + 16);
  const auto with_child = [&](std::uint32_t page) {
    std::string file = good;
    put(file, first_node, page);
    return walked(file).wrong;
  };
  const auto pages = static_cast<std::uint32_t>(good.size() / 4096);
  for (const auto& [page, says] :
       std::vector<std::pair<std::uint32_t, const char*>>{{static_cast<std::uint32_t>(root.page), "is used twice"},
                                                          {0, "is a meta page"},
                                                          {pages, "is after the end of the file"},
                                                          {0xFFFFFFFF, "is after the end of the file"},
                                                          {2, "but a branch was expected"}})  // an overflow page
    EXPECT_NE(with_child(page).find(says), std::string::npos) << with_child(page);
  std::string unused = good;
  for (const std::size_t meta : {0, 4096}) put(unused, meta + 136, std::uint64_t{pages - 3});
  EXPECT_NE(walked(unused).wrong.find("is not in use"), std::string::npos) << walked(unused).wrong;
  EXPECT_NE(walked(good.substr(0, good.size() - 4096)).wrong.find("after the end"), std::string::npos);
}

TEST(LmdbWalk, WhatAPageSaysOfItselfIsChecked) {
  const std::string good = LmdbWriter().file_of({{"a", "value"}, {"b", "other"}});
  const std::size_t page = 2 * std::size_t{4096};
  const auto at = [&](std::size_t i) {
    return number_at<std::uint16_t>(std::as_bytes(std::span(good)), page + 16 + 2 * i);
  };
  const auto with = [&](std::size_t offset, auto number) {
    std::string file = good;
    put(file, page + offset, number);
    return walked(file).wrong;
  };
  const auto contains = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(with(0, std::uint64_t{3}), "has the page number 3");
  contains(with(10, std::uint16_t{1}), "has the kind 1, but a leaf");
  contains(with(12, std::uint16_t{8}), "has nodes outside the page");
  contains(with(12, std::uint16_t{4000}), "a node outside the page");
  contains(with(14, std::uint16_t{5000}), "has nodes outside the page");
  contains(with(16, std::uint16_t{4090}), "a node outside the page");
  contains(with(16, std::uint16_t{4}), "a node outside the page");
  contains(with(at(0) + 6U, std::uint16_t{60000}), "a key that extends beyond the page");
  contains(with(at(0) + 6U, std::uint16_t{0}), "an empty key");
  contains(with(at(0) + 0U, std::uint32_t{0x7fffffff}), "a value that extends beyond the page");
  contains(with(at(0) + 0U, std::uint32_t{2}), "sizes do not add up to the page size");
  contains(with(18, at(0)), "not in order");
  contains(with(at(0) + 4U, std::uint16_t{0x10}), "an unknown kind");
  contains(with(at(0) + 4U, std::uint16_t{kIsDatabase}), "an invalid database record");
  contains(with(at(0) + 4U, std::uint16_t{kHasDuplicates}), "several values for one key");
  contains(with(12, std::uint16_t{18}), "2 entries according to its root, but 1");
  std::string entries = good;
  for (const std::size_t meta : {0, 4096}) put(entries, meta + 88 + 32, std::uint64_t{3});
  contains(walked(entries).wrong, "3 entries according to its root, but 2");
  std::string depth = good;
  for (const std::size_t meta : {0, 4096}) put(depth, meta + 88 + 6, std::uint16_t{33});
  contains(walked(depth).wrong, "33 levels");
  for (const std::size_t meta : {0, 4096}) put(depth, meta + 88 + 6, std::uint16_t{2});
  contains(walked(depth).wrong, "but a branch was expected");
}

TEST(LmdbIndex, ComesBackFromItsFileAndFromNoOther) {
  const std::string file = LmdbWriter().file_of(some_entries(10));
  const storage::ObjectStat stat{file.size(), 7};
  const auto index = LmdbIndex::build(walked(file).walk, stat);
  const auto parse = [&](std::string bytes, const storage::ObjectStat& of) {
    memory::ByteBuffer buffer;
    std::memcpy(buffer.resize(bytes.size()).data(), bytes.data(), bytes.size());
    return LmdbIndex::parse(std::move(buffer), bytes.size(), of);
  };
  const std::string bytes(reinterpret_cast<const char*>(index.file_bytes().data()), index.file_bytes().size());
  const auto again = parse(bytes, stat);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->key(9), index.key(9));
  EXPECT_FALSE(parse(bytes, {file.size(), 8}));
  EXPECT_FALSE(parse(bytes, {file.size() + 1, 7}));
  EXPECT_FALSE(parse(bytes, {100, 7}));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(parse(damaged, stat)) << i;
  }
}

TEST(LmdbIndex, AFrameOfAnotherEntryIsNoValue) {
  const std::string file = LmdbWriter().file_of({{"a", "12345"}, {"b", std::string(5000, 'x')}, {"c", "54321"}});
  const auto index = LmdbIndex::build(walked(file).walk, {file.size(), 1});
  const auto frame = [&](std::uint64_t entry) {
    return file.substr(index.location(entry).offset, index.location(entry).bytes);
  };
  const auto is_value = [&](const std::string& bytes, std::uint64_t entry) {
    return index.value_in(std::as_bytes(std::span(bytes)), entry).has_value();
  };
  EXPECT_TRUE(is_value(frame(0), 0));
  EXPECT_FALSE(is_value(frame(2), 0)) << "another key";
  for (const std::size_t at : {0, 4, 6, 8}) {
    std::string damaged = frame(0);
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(is_value(damaged, 0)) << at;
  }
  EXPECT_TRUE(is_value(frame(1), 1));
  for (const std::size_t at : {0, 10, 12}) {
    std::string damaged = frame(1);
    damaged[at] = static_cast<char>(damaged[at] ^ 3);
    EXPECT_FALSE(is_value(damaged, 1)) << at;
  }
  EXPECT_FALSE(is_value(frame(0).substr(0, 10), 0)) << "cut";
}

}  // namespace
}  // namespace feedline::format
