// SPDX-License-Identifier: Apache-2.0
#include "format/folder/pattern_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cache/persisted_tables.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

// The layout of an index file with S samples, F fields, D folders, K bytes of keys and N bytes of names, stored as a
// frame (cache/frame.h).
//
//     numbers     S, F, D, K, N, samples left out, fingerprint of the dataset
//     8 x S       end of each sample's key in the keys
//     8 x F x W   W = (S + 63) / 64 words per field: bit i % 64 of word i / 64 is set if sample i has no file for the field
//     8 x D+1     end of each name in the names: the folders relative to the root, the question
//     16 x D      size and modification time of each folder, read before it was listed
//     K           keys
//     N           names
enum Number : std::size_t { kSamples, kFields, kFolders, kKeyBytes, kNameBytes, kLeftOut, kFingerprint, kNumbers };

constexpr std::uint64_t kMostFields = 1 << 16;  // more fields than any sample has, and too few to overflow

std::string digest_of(const PatternQuestion& question) {
  const std::string text = question.text();
  return cache::hex_of(xxh3(std::as_bytes(std::span(text))));
}

// The file name of an index. If a folder is indexed for different fields, the indexes have different names.
class TableName {
 public:
  explicit TableName(const PatternQuestion& question)
      : suffix_("." + digest_of(question) + ".feedline-pattern-index") {}
  cache::PersistedTables tables(const std::string& directory, const std::shared_ptr<cache::Notes>& notes) const {
    return {cache::TableKind{kPatternIndex, suffix_}, directory, notes};
  }

 private:
  const std::string suffix_;
};

std::vector<std::uint64_t> bits_of(const std::vector<std::vector<bool>>& lacks, std::size_t samples) {
  const std::size_t words = (samples + 63) / 64;
  std::vector<std::uint64_t> bits(lacks.size() * words);
  for (std::size_t field = 0; field < lacks.size(); ++field)
    for (std::size_t i = 0; i < samples; ++i)
      if (lacks[field][i]) bits[field * words + i / 64] |= std::uint64_t{1} << (i % 64);
  return bits;
}

// Does not depend on the path of the root, so that copies of the dataset have the same fingerprint.
std::uint64_t fingerprint_of(const PatternQuestion& question, const PatternSamples& samples) {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view("patterns"));
  if (question.missing != Missing::kError) fingerprint.add(question.missing == Missing::kSkip ? "skip" : "none");
  for (const FieldPattern& pattern : question.patterns) {
    fingerprint.add(pattern.description.name);
    fingerprint.add(pattern.path_of("{key}"));
  }
  for (const std::string& key : samples.keys) fingerprint.add(key);
  for (const auto& lacks : samples.lacks)
    for (std::size_t i = 0; i < lacks.size(); ++i)
      if (lacks[i]) fingerprint.add(std::uint64_t{i});
  return fingerprint.value();
}

}  // namespace

std::string PatternQuestion::text() const {
  constexpr char kEnd = '\0';  // occurs in no path and no spec
  std::string text = root + kEnd + std::to_string(static_cast<int>(missing));
  for (const FieldPattern& pattern : patterns)
    text += kEnd + pattern.description.name + kEnd + pattern.path_of("{key}");
  return text;
}

PatternIndex PatternIndex::build(const PatternQuestion& question, const PatternListing& listing) {
  const PatternSamples samples = samples_of(listing, question.missing);
  std::string keys, names;
  std::vector<std::uint64_t> key_ends, name_ends;
  for (const std::string& key : samples.keys) key_ends.push_back(keys.append(key).size());
  for (const ListedFolder& folder : listing.folders) name_ends.push_back(names.append(folder.path).size());
  name_ends.push_back(names.append(question.text()).size());
  const auto stats = stats_of(listing.folders);
  const auto lacks = bits_of(samples.lacks, samples.keys.size());
  cache::FrameBuilder builder(kPatternIndex, {samples.keys.size(), samples.lacks.size(), stats.size(), keys.size(),
                                              names.size(), samples.left_out, fingerprint_of(question, samples)});
  builder.add(key_ends);
  builder.add(lacks);
  builder.add(name_ends);
  builder.add(stats);
  builder.add(keys);
  builder.add(names);
  PatternIndex index;
  index.file_ = builder.write(index.buffer_);
  FEEDLINE_CHECK(index.find_sections());
  return index;
}

std::optional<PatternIndex> PatternIndex::parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                                const PatternQuestion& question) {
  PatternIndex index;
  index.file_ = file;
  index.pin_ = std::move(pin);
  const bool is_sound = index.find_sections() && cache::is_undamaged(file) && index.keys_.is_consistent() &&
                        index.names_.is_consistent() && index.samples() > 0 &&
                        index.fields_ == question.patterns.size();
  if (!is_sound || index.names_[index.names_.size() - 1] != question.text()) return {};
  return index;
}

// Finds the sections in the order in which they are stored. No other function depends on this order.
bool PatternIndex::find_sections() {
  cache::FrameReader reader(file_, kPatternIndex, kNumbers);
  const std::uint64_t samples = reader.count(kSamples), folders = reader.count(kFolders);
  const std::uint64_t key_bytes = reader.count(kKeyBytes), name_bytes = reader.count(kNameBytes);
  fields_ = reader.count(kFields);
  left_out_ = reader.number(kLeftOut);
  fingerprint_ = reader.number(kFingerprint);
  keys_.ends = reader.take<std::uint64_t>(samples);
  if (fields_ > kMostFields) return false;
  lacks_ = reader.take<std::uint64_t>(fields_ * words());
  names_.ends = reader.take<std::uint64_t>(folders + 1);
  folders_.stats = reader.take<ListedFolders::Stat>(folders);
  const auto keys = reader.take<char>(key_bytes), names = reader.take<char>(name_bytes);
  keys_.text = {keys.data(), keys.size()};
  names_.text = {names.data(), names.size()};
  folders_.names = names_;
  return reader.is_whole();
}

bool PatternIndex::have_all(std::size_t field) const {
  return std::ranges::all_of(lacks_.subspan(field * words(), words()), [](std::uint64_t word) { return word == 0; });
}

std::optional<PatternIndex> load_pattern_index(const storage::Storage& storage, const PatternQuestion& question,
                                               const std::string& directory, std::chrono::seconds listing_age,
                                               const std::shared_ptr<cache::Notes>& notes) {
  std::optional<PatternIndex> index;
  const TableName name(question);
  name.tables(directory, notes).map(storage, question.root, [&](cache::PersistedTables::Bytes bytes) {
    index = PatternIndex::parse(bytes.file, std::move(bytes.pin), question);
    if (index && !index->folders().is_current(storage, question.root, listing_age)) index.reset();
    return index.has_value();
  });
  return index;
}

Result<void> save_pattern_index(const storage::Storage& storage, const PatternIndex& index,
                                const PatternQuestion& question, const std::string& directory,
                                const std::shared_ptr<cache::Notes>& notes) {
  const TableName name(question);
  return name.tables(directory, notes).save(storage, question.root, index.file_bytes());
}

}  // namespace feedline::format
